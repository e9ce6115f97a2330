import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { crlIssuerOf } from '../../../../src/engines/pki/authority/crlissuer.ts'
import { failureOf } from '../../ocsp/answer.ts'
import { TestMount, useOcspWorld, type Worker } from '../../ocsp/world.ts'

/** Lists that the owner of the database has changed, as relying parties find them. */

const world = useOcspWorld()
const sql = (text: string, values: readonly (string | Buffer)[] = []) => world.cluster.place.sql(text, [...values])
const patience = { timeout: 30_000 }
const being = 'the revocation list was changed in the database, and is being made again'

let pki: TestMount
let serials: string[]
beforeEach(async () => {
  pki = await TestMount.make(world.worker)
  serials = []
})

async function revoke(): Promise<void> {
  const serial = await pki.issue()
  const { revoker } = world.worker.context
  await revoker.bySerial(pki.mount, Buffer.from(serial, 'hex'), { reason: null })
  serials.push(serial)
}

/** Runs `later`, then puts the list from before back in place of the new one. */
async function putBack(kind: 'complete' | 'delta', later: () => Promise<void>): Promise<void> {
  const where = 'WHERE mount = ? AND kind = ?'
  const values = [pki.mount.uuid, kind]
  await sql('DROP TABLE IF EXISTS kept')
  await sql(`CREATE TABLE kept AS SELECT * FROM pki_crls ${where}`, values)
  await later()
  await sql(`DELETE FROM pki_crls ${where}`, values)
  await sql('INSERT INTO pki_crls SELECT * FROM kept')
}

const alarms = ({ reports }: Worker) => reports.filter((text) => text.includes('was changed in the database'))

describe('a list that was put back in SQL', () => {
  test.each(['complete', 'delta'] as const)('is not served, is an alarm, and a new one is: %s', async (kind) => {
    await revoke()
    await putBack(kind, revoke)
    const worker = await world.join()
    const cold = pki.on(worker)
    await expect(cold.listed(kind)).rejects.toMatchObject({ status: 503, message: being, retryAfterSeconds: 1 })
    expect(alarms(worker)[0]).toMatch(
      /a published revocation list .*: pki_crls .*: number 3 was published, it has number 2/,
    )
    await vi.waitFor(async () => expect(await cold.listed(kind)).toEqual(kind === 'delta' ? [] : serials), patience)
    expect(await cold.listed()).toEqual(serials)
    expect(alarms(worker)).toHaveLength(1)
  })

  test('stays refused while nobody may sign another one', async () => {
    await revoke()
    await putBack('complete', revoke)
    await pki.run('POST', 'issuer/:issuer_ref', { issuer_ref: 'default' }, { usage: ['issuing-certificates'] })
    const worker = await world.join()
    const cold = pki.on(worker)
    for (let n = 0; n < 3; n++) await expect(cold.listed()).rejects.toMatchObject({ status: 503, message: being })
    const counted = worker.metrics.snapshot().find(({ name }) => name === 'strongroom.pki.crl.alarms')
    expect(counted).toMatchObject({ value: 1 })
    const usage = ['issuing-certificates', 'crl-signing']
    await pki.run('POST', 'issuer/:issuer_ref', { issuer_ref: 'default' }, { usage })
    await worker.context.crls.rebuild(pki.mount)
    expect(await cold.listed()).toEqual(serials)
  })
})

test.each([
  ['removed', 'DELETE FROM pki_crls WHERE mount = ?', 'it is gone'],
  ['edited', 'UPDATE pki_crls SET next_update = next_update + 1 WHERE mount = ?', 'the seal is broken'],
])('a list that was %s in SQL is not served, is an alarm, and a new one is', async (_, attack, reason) => {
  await revoke()
  await sql(attack, [pki.mount.uuid])
  const worker = await world.join()
  const cold = pki.on(worker)
  await expect(cold.listed()).rejects.toMatchObject({ status: 503, message: being })
  expect(alarms(worker)[0]).toContain(reason)
  await vi.waitFor(async () => expect(await cold.listed()).toEqual(serials), patience)
})

test('a list whose entries were edited in SQL is not served, is an alarm, and a new one is', async () => {
  await revoke()
  const [list] = await sql(
    "SELECT JSON_VALUE(parts, '$[0].segment') AS segment FROM pki_crls WHERE mount = ? AND kind = 'complete'",
    [pki.mount.uuid],
  )
  await sql('UPDATE pki_segments SET entries = REVERSE(entries) WHERE id = ?', [String(list?.segment)])
  const worker = await world.join()
  const cold = pki.on(worker)
  await expect(cold.listed()).rejects.toMatchObject({ status: 503, message: being })
  expect(alarms(worker)[0]).toContain('pki_segments')
  await vi.waitFor(async () => expect(await cold.listed()).toEqual(serials), patience)
})

describe('OCSP asked where entries of lists were edited in SQL', () => {
  const entries = 'UPDATE pki_segments SET entries = REVERSE(entries) WHERE crl_issuer = ?'
  const absorbed = (from: number, to: number) =>
    `UPDATE pki_manifests SET absorbed = REPLACE(absorbed, '${from}', '${to}') WHERE crl_issuer = ?`
  const crlIssuer = async () => Buffer.from(crlIssuerOf((await pki.issuer()).certificate), 'hex')
  const failures = async (on: TestMount, serial: string) =>
    (await Promise.all([1, 2, 3].map(() => on.ask(serial)))).map(({ body }) => failureOf(body))
  const threeTimes = ['tryLater', 'tryLater', 'tryLater']

  test('says try later, alarms once, and answers when they are made again', async () => {
    const good = await pki.issue()
    await revoke()
    await sql(entries, [await crlIssuer()])
    await sql('UPDATE pki_fingerprints SET fingerprints = REVERSE(fingerprints)')
    const worker = await world.join()
    const cold = pki.on(worker)
    expect(await failures(cold, good)).toEqual(threeTimes)
    await vi.waitFor(async () => expect((await cold.answer(good)).status).toBe('good'), patience)
    expect((await cold.answer(serials[0] as string)).status).toBe('revoked')
    expect(alarms(worker)).toHaveLength(1)
  })

  test.each([
    ['the entries', entries, entries],
    ['their manifest', absorbed(1, 2), absorbed(2, 1)],
  ])('never says good of one of them, though its revocation was deleted: %s', async (_, attack, undo) => {
    await revoke()
    await sql('DELETE FROM pki_revocations WHERE mount = ?', [pki.mount.uuid])
    await sql(attack, [await crlIssuer()])
    const worker = await world.join()
    const cold = pki.on(worker)
    const serial = serials[0] as string
    expect(await failures(cold, serial)).toEqual(threeTimes)
    await sleep(500)
    expect(await failures(cold, serial)).toEqual(threeTimes)
    expect(alarms(worker)).toHaveLength(1)
    await sql(undo, [await crlIssuer()])
    await vi.waitFor(async () => expect((await cold.answer(serial)).status).toBe('revoked'), patience)
  })
})
