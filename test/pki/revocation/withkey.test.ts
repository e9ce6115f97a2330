import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { done, expectData, expectRefused, fresh, useNode } from '../../api/node.ts'
import { runDirectory } from '../../support/directory.ts'
import { type Answer, createAuthority, dataOf, errorsOf, type TestAuthority } from '../api/authority.ts'

const node = useNode()

async function authority(role: Answer = {}): Promise<TestAuthority> {
  const pki = await createAuthority(node)
  await pki.root()
  await pki.role('r', role)
  return pki
}
const issue = async (pki: TestAuthority, more: Answer = {}): Promise<Answer> =>
  dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h', ...more })))
const otherKey = "provided private key does not match certificate's public key"

describe('revoke-with-key', () => {
  test.each([
    ['rsa', 2048, ''],
    ['rsa', 2048, 'pkcs8'],
    ['ec', 224, ''],
    ['ec', 256, 'pkcs8'],
    ['ec', 384, ''],
    ['ec', 521, 'pkcs8'],
    ['ed25519', 0, ''],
  ])('takes the key that issue handed out: %s %i %j', async (type, bits, format) => {
    const pki = await authority({ key_type: type, key_bits: bits })
    const { serial_number: serial, private_key: key } = await issue(pki, { private_key_format: format })
    const revoked = await pki.post('revoke-with-key', {
      serial_number: serial,
      private_key: key,
      reason: 'keyCompromise',
    })
    const times = { revocation_time: expect.any(Number), revocation_time_rfc3339: expect.any(String) }
    expectData(revoked, { ...times, state: 'revoked' })
    expectData(await pki.post('revoke-with-key', { serial_number: serial, private_key: key }), dataOf(revoked))
  })

  test('takes a certificate that is not stored, and stores it', async () => {
    const pki = await authority({ no_store: true })
    const { certificate, private_key: key, serial_number: serial } = await issue(pki)
    const unknown = { serial_number: serial, private_key: key }
    expectRefused(await pki.post('revoke-with-key', unknown), 400, `certificate with serial ${serial} not found.`)
    expect((await pki.post('revoke-with-key', { certificate, private_key: key })).status).toBe(200)
    expect(dataOf(await pki.get(`cert/${serial}`)).certificate).toBe(certificate)
  })

  test('refuses a wrong, missing or misplaced key, and neither revokes nor stores anything', async () => {
    const pki = await authority({ no_store: true })
    const { certificate, serial_number: serial } = await issue(pki)
    const { private_key: other } = await issue(pki)
    expectRefused(await pki.post('revoke-with-key', { certificate, private_key: other }), 400, otherKey)
    const missing = 'Must have private key to revoke via the /revoke-with-key path.'
    for (const body of [{ certificate }, { certificate, private_key: '' }]) {
      expectRefused(await pki.post('revoke-with-key', body), 400, missing)
    }
    const path = await pki.post('revoke-with-key', { certificate, private_key: '/tmp/key.pem' })
    expect(errorsOf(path)[0]).toMatch(/^Provided data for private_key was too short; perhaps a path was passed/)
    expect((await pki.get(`cert/${serial}`)).status).toBe(404)
  })

  test('needs exactly one of serial_number and certificate, and obeys the rules of revoke', async () => {
    const pki = await createAuthority(node)
    const { certificate, serial_number: serial } = await pki.root()
    const key = String(
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'sec1' }),
    )
    const refusal = async (body: Answer) => errorsOf(await pki.post('revoke-with-key', { ...body, private_key: key }))
    expect(await refusal({})).toEqual(['The serial number or certificate to revoke must be provided.'])
    expect(await refusal({ certificate, serial_number: serial })).toEqual([
      'Must provide either the certificate or the serial to revoke; not both.',
    ])
    expect(await refusal({ serial_number: serial })).toEqual([expect.stringContaining('to its own CRL is not allowed')])
    expect(await refusal({ serial_number: 'aa:bb', reason: 'certificateHold' })).toEqual([
      expect.stringMatching(/^reason: /),
    ])
  })

  test('leaves the private key neither in the audit file, nor in the log, nor in an answer', async () => {
    const file = join(runDirectory(), `${fresh('revoked')}.log`)
    await done(node.root.post(`sys/audit/${fresh('file')}`, { type: 'file', options: { file_path: file } }))
    const pki = await authority()
    const { serial_number: serial, private_key: key } = await issue(pki)
    const pkcs8 = createPrivateKey(String(key)).export({ format: 'pem', type: 'pkcs8' })
    const bad = String(key).replace('\nM', '\n!')
    const replies = [
      await pki.post('revoke-with-key', { serial_number: 'aa:bb', private_key: key }),
      await pki.post('revoke-with-key', { serial_number: serial, private_key: bad }),
      await pki.post('revoke-with-key', { serial_number: serial, private_key: `${key}${pkcs8}` }),
      await pki.post('revoke-with-key', { serial_number: serial, private_key: [key] }),
      await pki.post('revoke', { serial_number: serial, private_key: key }),
      await pki.post('revoke-with-key', { serial_number: serial, private_key: key }),
    ]
    expect(replies.map(({ status }) => status)).toEqual([400, 400, 400, 400, 200, 200])
    const audited = readFileSync(file, 'utf8')
    expect(audited).toContain(`"path":"${pki.path}/revoke-with-key"`)
    expect(audited).toMatch(/"private_key":"hmac-sha256:[0-9a-f]{64}"/)
    const secret = String(key).split('\n')[1] ?? ''
    expect(secret.length).toBe(64)
    for (const text of [audited, node.server.output(), ...replies.map((reply) => reply.text)]) {
      expect(text).not.toContain(secret)
      expect(text).not.toContain(secret.slice(8, 40))
    }
  })
})
