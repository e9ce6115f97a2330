import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import { certificateTable, revocationTable } from '../../../src/engines/pki/certificates/tables.ts'
import { ApiError } from '../../../src/errors.ts'
import { createRevocationWorld, hexOf, type RevocationWorld, type TestMount } from './world.ts'

/** Revocations against each other, and against requests that remove the issuers and rows they need. */

let world: RevocationWorld
beforeAll(async () => {
  world = await createRevocationWorld(2)
})
afterAll(() => world?.[Symbol.asyncDispose]())

const wish = { reason: null }
const worker = (n: number) => world.nodes[n % 2] ?? world.node
const times = <T>(count: number, work: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, n) => work(n)))

/** The numbers of revocations on the mount's list, each once and without a gap. */
async function seqsOf({ uuid, ca }: TestMount): Promise<number[]> {
  const crlIssuer = Buffer.from(crlIssuerOf(ca.certificate), 'hex')
  const rows = await world.sql('SELECT seq, mount FROM pki_revocations WHERE crl_issuer = ? ORDER BY seq', [crlIssuer])
  for (const { mount } of rows) expect(mount).toBe(uuid)
  return rows.map(({ seq }) => Number(seq))
}
const from1To = (n: number) => Array.from({ length: n }, (_, index) => index + 1)

describe('at once', () => {
  test('64 by serial number and 64 by certificate, of one that is not stored yet, are one revocation', async () => {
    const mount = await world.mountOf()
    const certificate = mount.ca.sign()
    const answers = await times(128, (n) =>
      n % 2 === 0
        ? worker(n >> 1).revoker.byCertificate(mount, certificate, wish)
        : worker(n >> 1)
            .revoker.bySerial(mount, certificate.serial, wish)
            .catch((error: unknown) => error),
    )
    const revoked = answers.filter((one) => !(one instanceof ApiError))
    expect(revoked.length).toBeGreaterThanOrEqual(64)
    for (const one of revoked) expect(one).toEqual(revoked[0])
    for (const one of answers) if (one instanceof ApiError) expect(one.status).toBe(400)
    expect(await seqsOf(mount)).toEqual([1])
    const rows = await world.sql('SELECT id FROM pki_certificates WHERE serial = ?', [certificate.serial])
    expect(rows).toHaveLength(1)
  })

  test('200 certificates on two workers are revoked and published, each once', async () => {
    const mount = await world.mountOf()
    const certificates = await times(200, (n) => mount.store({}, worker(n)))
    for (const { published } of world.nodes) published.length = 0
    await times(200, (n) => worker(n).revoker.bySerial(mount, certificates[n]?.serial ?? Buffer.alloc(0), wish))
    expect(await seqsOf(mount)).toEqual(from1To(200))
    const published = world.nodes.flatMap((node) => node.published.map(({ serial }) => serial))
    expect(published.toSorted()).toEqual(certificates.map(hexOf).toSorted())
    for (const node of world.nodes) {
      for (const one of certificates) {
        const found = await node.certificates.find({ mount: mount.uuid, serial: hexOf(one) })
        expect(found?.revocation?.serial).toBe(hexOf(one))
      }
    }
  })

  test('revocations and the deletion of their issuer leave no gap and lose none', async () => {
    const mount = await world.mountOf()
    const certificates = await times(60, () => mount.store())
    const answers = await times<unknown>(61, (n) => {
      const { serial } = certificates[n - 1] ?? {}
      return serial === undefined ? mount.remove(mount.issuer) : worker(n).revoker.bySerial(mount, serial, wish)
    })
    for (const answer of answers.slice(1)) expect(answer).toMatchObject({ state: 'revoked' })
    const seqs = await seqsOf(mount)
    expect(seqs).toEqual(from1To(seqs.length))
    const rows = await world.sql('SELECT crl_issuer FROM pki_revocations WHERE mount = ?', [mount.uuid])
    expect(rows).toHaveLength(60)
  })

  test('a revocation and the removal of its rows, as tidying does it, are a refusal or a record, never half of one', async () => {
    const mount = await world.mountOf()
    const { database } = world.node
    for (let round = 0; round < 10; round++) {
      const certificate = await mount.store()
      const name = { mount: mount.uuid, serial: hexOf(certificate) }
      await worker(round).revoker.bySerial(mount, certificate.serial, wish)
      const remove = database.transaction(async (tx) => {
        await database.table(certificateTable).removeWhere(tx, name)
        await database.table(revocationTable).removeWhere(tx, name)
      })
      const [again] = await Promise.allSettled([
        worker(round + 1).revoker.bySerial(mount, certificate.serial, wish),
        remove,
      ])
      if (again.status === 'rejected') expect(again.reason).toMatchObject({ status: 400 })
      else expect(again.value).toMatchObject({ state: 'revoked' })
    }
    const ledger = await world.sql('SELECT last FROM pki_ledgers WHERE crl_issuer = ?', [
      Buffer.from(crlIssuerOf(mount.ca.certificate), 'hex'),
    ])
    const seqs = await seqsOf(mount)
    expect(new Set(seqs).size).toBe(seqs.length)
    expect(Number(ledger[0]?.last)).toBeGreaterThanOrEqual(10)
  })
})

test('a revocation of a certificate that expires is recorded where the mount allows it', async () => {
  const mount = await world.mountOf()
  const { serial } = await mount.store({ notAfter: Date.now() - 60_000 })
  const { revoker } = world.node
  expect(await revoker.bySerial(mount, serial, wish)).toEqual({ state: 'expired' })
  await mount.configure({ allowExpiredCertRevocation: true })
  const revoked = await revoker.bySerial(mount, serial, wish)
  expect(revoked).toMatchObject({ state: 'revoked' })
  await mount.configure({ allowExpiredCertRevocation: false })
  expect(await revoker.bySerial(mount, serial, wish)).toEqual(revoked)
})

test('issuers of one name and key share their numbers, in whichever mount they are', async () => {
  const [one, other] = [await world.mountOf(), await world.mountOf()]
  await other.add(one.ca.certificate)
  const { revoker } = world.node
  const first = one.ca.sign()
  const second = one.ca.sign()
  expect(await revoker.byCertificate(one, first, wish)).toMatchObject({ row: { seq: 1 } })
  expect(await revoker.byCertificate(other, second, wish)).toMatchObject({ row: { seq: 2 } })
  expect(await revoker.byCertificate(other, first, wish)).toMatchObject({ row: { seq: 3, mount: other.uuid } })
})
