import { describe, expect, test } from 'vitest'
import { done, useNode } from '../../api/node.ts'
import { until } from '../../attack/nodes.ts'
import { openSql } from '../../attack/sql.ts'
import { type Answer, createAuthority, dataOf, type TestAuthority } from '../api/authority.ts'
import { ocspStatus, readList } from './relying.ts'

/** One CA in several mounts, at once or one after the other: its revocations and numbers are the CA's. */

const node = useNode({ workers: 2 })

interface SharedCa {
  readonly certificate: string
  /** The certificate with its private key, PEM. */
  readonly bundle: string
}

async function createCa(): Promise<{ readonly pki: TestAuthority; readonly ca: SharedCa }> {
  const pki = await createAuthority(node)
  const reply = await done(pki.post('root/generate/exported', { common_name: 'R', key_type: 'ec', ttl: '80000h' }))
  const { certificate, private_key: key } = dataOf(reply)
  await pki.role('r')
  return { pki, ca: { certificate: String(certificate), bundle: `${certificate}\n${key}\n` } }
}

async function mountOf(ca: SharedCa): Promise<TestAuthority> {
  const pki = await createAuthority(node)
  await done(pki.post('config/ca', { pem_bundle: ca.bundle }))
  await pki.role('r')
  return pki
}

const issue = async (pki: TestAuthority): Promise<Answer> =>
  dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '24h' })))
const plain = (serial: unknown): string => String(serial).replaceAll(':', '').replace(/^0+/, '')
async function listOf(pki: TestAuthority, ca: SharedCa) {
  const { number, serials } = await readList((await done(pki.get('crl/pem'))).text, ca.certificate)
  return { number, serials: serials.map(plain) }
}
/** Resolves when removed mounts have nothing left. */
async function swept(): Promise<void> {
  await using sql = await openSql(node.server.database.url)
  const left = 'SELECT 1 FROM pki_authorities WHERE mount NOT IN (SELECT id FROM mounts)'
  await until(async () => (await sql.rows(left)).length === 0)
}
const statusOf = (pki: TestAuthority, ca: SharedCa, serial: unknown): Promise<string> =>
  ocspStatus(`${node.server.url}/v1/${pki.path}/ocsp`, ca.certificate, String(serial))

test('a certificate revoked by another mount is not good in any answer, though good was signed before', async () => {
  const { pki, ca } = await createCa()
  const other = await mountOf(ca)
  const { certificate, serial_number: serial } = await issue(pki)
  for (let time = 0; time < 8; time++) expect(await statusOf(pki, ca, serial)).toBe('good')
  await done(other.post('revoke', { certificate }))
  expect((await listOf(other, ca)).serials).toEqual([plain(serial)])
  for (let time = 0; time < 8; time++) expect(await statusOf(pki, ca, serial)).toBe('revoked')
}, 60_000)

test('a mount that has the certificate of a CA, and not its key, revokes nothing on the lists of the CA', async () => {
  const { pki, ca } = await createCa()
  const own = await createAuthority(node)
  await done(own.post('issuers/import/cert', { pem_bundle: ca.certificate }))
  const { certificate } = await issue(pki)
  const refused = await own.post('revoke', { certificate })
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('issuing CA and key re-imported')])
  // An intermediate of the CA, which anybody can import beside it.
  const other = await createAuthority(node)
  const { csr } = dataOf(await done(other.post('intermediate/generate/internal', { common_name: 'I', key_type: 'ec' })))
  const signed = dataOf(await done(pki.post('root/sign-intermediate', { csr, common_name: 'I', ttl: '70000h' })))
  const imported = dataOf(await done(own.post('issuers/import/cert', { pem_bundle: String(signed.certificate) })))
  await done(own.post(`issuer/${(imported.imported_issuers as string[])[0]}/revoke`))
  await done(pki.get('crl/rotate'))
  expect((await listOf(pki, ca)).serials).toEqual([])
}, 60_000)

describe('a mount that is disabled', () => {
  test.each([false, true])(
    'leaves its revocations and numbers to the next one, auto_rebuild %s',
    async (auto) => {
      const { pki, ca } = await createCa()
      await done(pki.post('config/crl', { auto_rebuild: auto }))
      const serials: string[] = []
      for (let count = 0; count < 3; count++) {
        const { serial_number: serial } = await issue(pki)
        await done(pki.post('revoke', { serial_number: serial }))
        serials.push(plain(serial))
      }
      await done(pki.get('crl/rotate'))
      const before = await listOf(pki, ca)
      expect(before.serials.toSorted()).toEqual(serials.toSorted())
      const { serial_number: last } = await issue(pki)
      await done(pki.post('revoke', { serial_number: last }))
      serials.push(plain(last))
      await done(node.root.delete(`sys/mounts/${pki.path}`))
      await swept()
      const next = await mountOf(ca)
      const after = await listOf(next, ca)
      expect(after.serials.toSorted()).toEqual(serials.toSorted())
      expect(after.number).toBeGreaterThan(before.number)
    },
    90_000,
  )
})
