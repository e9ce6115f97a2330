import { describe, expect, test } from 'vitest'
import { done, expectRefused, useSharedNode } from '../../api/node.ts'
import { certificateOf, createAuthority, dataOf, warningsOf } from './authority.ts'
import { csrOf, openssl } from './csr.ts'

/** The parts of a subject in requests for CAs. */

const node = useSharedNode()

const fields = ['ou', 'organization', 'country', 'locality', 'province', 'street_address', 'postal_code']
const bad = ['A\nB', 'A\u0000B', '\u007f', 'A\u0085B']

/** What a path needs beside a subject. */
const needsOf = async (path: string): Promise<object> => {
  if (path.endsWith('internal')) return { key_type: 'ec' }
  return path.endsWith('cross-sign') ? {} : { csr: await csrOf('/CN=S') }
}

describe.each([
  'root/generate/internal',
  'root/rotate/internal',
  'intermediate/generate/internal',
  'intermediate/cross-sign',
  'root/sign-intermediate',
])('%s', (path) => {
  test('refuses parts of a subject that roles refuse, too, and leaves nothing', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const body = await needsOf(path)
    for (const field of fields) {
      for (const value of bad) {
        const text = `${field} contains a control character`
        const wanted = { common_name: 'CA', ...body, [field]: ['good', value] }
        expectRefused(await pki.post(path, wanted), 400, text)
      }
      expect((await pki.post('roles/r', { [field]: ['good', 'A\nB'] })).status).toBe(400)
    }
    for (const what of ['issuers', 'keys']) expect(dataOf(await pki.list(what)).keys).toHaveLength(1)
  })

  test('leaves out empty parts, as roles do', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const body = await needsOf(path)
    const wanted = { common_name: 'CA', ...body, ou: [''], organization: 'Eng,', country: ['', 'SE'] }
    const data = dataOf(await done(pki.post(path, wanted)))
    const subject = data.csr
      ? await openssl(['req', '-in', 'csr', '-noout', '-subject'], { csr: String(data.csr) })
      : certificateOf(data).subject.replaceAll('\n', ', ').replaceAll('=', ' = ')
    expect(subject.trim().replace(/^subject=/, '')).toBe('C = SE, O = Eng, CN = CA')
  })
})

test('of a request for an intermediate that RFC 5280 does not allow is answered with warnings', async () => {
  const pki = await createAuthority(node)
  const wanted = { common_name: 'S', key_type: 'ec', country: 'Netherlands', organization: 'O'.repeat(65) }
  expect(warningsOf(await done(pki.post('intermediate/generate/internal', wanted)))).toEqual([
    'subject: countryName is longer than 2 characters (name_length)',
    'subject: organizationName is longer than 64 characters (name_length)',
  ])
  const good = { common_name: 'S', key_type: 'ec', country: 'NL', organization: 'O'.repeat(64) }
  expect(warningsOf(await done(pki.post('intermediate/generate/internal', good)))).toEqual([])
  expect((await pki.post('root/generate/internal', wanted)).status).toBe(400)
})
