import type { RowDataPacket } from 'mysql2/promise'
import { describe, expect, test } from 'vitest'
import { DamagedRow } from '../../../../src/store/faults.ts'
import { saved as savedAt } from '../saved.ts'
import { useWorker } from '../worker.ts'
import { nodeAt, serialsOf } from '../world.ts'

const worker = useWorker('crlattack')

const sql = (text: string, ...values: (string | number | Buffer | null)[]): Promise<RowDataPacket[]> =>
  worker.cluster.place.sql(text, values)
const saved = (table: string, where: string, ...values: (string | number)[]) =>
  savedAt(worker.cluster.place, table, where, ...values)
const published = () => {
  const { node, ca, mount } = worker
  const name = { mount, crlIssuer: ca.crlIssuer, site: 'default', scope: 'local', kind: 'complete' } as const
  return node.database.snapshot((q) => node.builder.lists.find(q, name))
}
const ofCa = 'WHERE crl_issuer = UNHEX(?)'

describe('a revocation that is deleted in SQL', () => {
  test('after a list named it stays on every later list', async () => {
    const rows = await worker.revoke(3)
    await worker.build()
    await sql(`DELETE FROM pki_revocations ${ofCa} AND seq = 2`, worker.ca.crlIssuer)
    rows.push(...(await worker.revoke(1)))
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
    expect(await worker.node.listed.find(worker.ca.crlIssuer, rows[1]?.serial ?? '')).toMatchObject({ site: 'default' })
  })

  test('before any list named it is an alarm, and the others are listed', async () => {
    const rows = await worker.revoke(5)
    await sql(`DELETE FROM pki_revocations ${ofCa} AND seq IN (2, 3, 5)`, worker.ca.crlIssuer)
    expect((await worker.build()).complete.serials).toEqual(serialsOf([rows[0], rows[3]].flatMap((row) => row ?? [])))
    expect(worker.node.alarms).toEqual([
      {
        crlIssuer: worker.ca.crlIssuer,
        site: 'default',
        text: 'revocations were removed from the database: numbers 2-3, 5',
      },
    ])
    await worker.build()
    expect(worker.node.alarms).toHaveLength(1)
  })
})

test('a revocation that is edited in SQL before any list named it is an alarm, and the others are listed', async () => {
  const rows = await worker.revoke(3)
  await sql(`UPDATE pki_revocations SET serial = UNHEX('0102') ${ofCa} AND seq = 2`, worker.ca.crlIssuer)
  expect((await worker.build()).complete.serials).toEqual(serialsOf([rows[0], rows[2]].flatMap((row) => row ?? [])))
  expect(worker.alarms()).toEqual(['revocations were edited in the database and are not listed: numbers 2'])
})

describe('a segment that is edited or deleted in SQL', () => {
  const attacks = [
    ['edited', `UPDATE pki_segments SET entries = SUBSTRING(entries, 40) ${ofCa}`],
    ['deleted', `DELETE FROM pki_segments ${ofCa}`],
  ] as const

  test.each(attacks)('%s: an alarm, and it is made again from the revocations', async (_, attack) => {
    const rows = await worker.revoke(2100)
    await worker.build()
    await sql(attack, worker.ca.crlIssuer)
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
    expect(worker.alarms()).toHaveLength(2)
    expect(worker.alarms()[0]).toMatch(/^entries of revocation lists were changed in the database: pki_segments/)
    rows.push(...(await worker.revoke(1)))
    await sql(attack, worker.ca.crlIssuer)
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
  })

  test.each(attacks)('%s together with a revocation in it: no list is made without it', async (_, attack) => {
    await worker.revoke(4)
    const before = await worker.build()
    await sql(attack, worker.ca.crlIssuer)
    await sql(`DELETE FROM pki_revocations ${ofCa} AND seq = 2`, worker.ca.crlIssuer)
    await expect(worker.build()).rejects.toThrow(
      'of its 4 entries only 3 are recorded as revocations; restore a backup',
    )
    expect((await published())?.number).toBe(before.complete.number)
  })
})

describe('a published list', () => {
  test('that is replaced by an older one is refused, is an alarm, and is replaced by a newer one', async () => {
    await worker.revoke(1)
    await worker.build()
    const putBack = await saved('pki_crls', ofCa, worker.ca.crlIssuer)
    const rows = await worker.revoke(1)
    await worker.build()
    await putBack()
    await expect(published()).rejects.toThrow('number 2 was published, it has number 1')
    const { complete } = await worker.build({ kinds: 'delta' })
    expect(worker.alarms()[0]).toMatch(/^a published revocation list was changed in the database: pki_crls/)
    expect([complete.number, complete.serials.length]).toEqual([3, 2])
    expect(complete.serials).toContain(rows[0]?.serial)
  })

  test('that is removed is refused', async () => {
    await worker.build()
    await sql(`DELETE FROM pki_crls ${ofCa}`, worker.ca.crlIssuer)
    await expect(published()).rejects.toThrow('number 1 was published, it is gone')
  })

  test('that was edited is refused', async () => {
    await worker.build()
    await sql(`UPDATE pki_crls SET next_update = next_update + 1 ${ofCa}`, worker.ca.crlIssuer)
    await expect(published()).rejects.toBeInstanceOf(DamagedRow)
    expect((await worker.build()).complete.number).toBe(2)
  })
})

describe('the manifest', () => {
  test('that is replaced by an older one, together with the lists and segments of that time, is refused', async () => {
    await worker.revoke(1)
    await worker.build()
    const tables = ['pki_crls', 'pki_manifests', 'pki_crl_numbers', 'pki_ledgers']
    const old = await Promise.all(tables.map((table) => saved(table, ofCa, worker.ca.crlIssuer)))
    await worker.revoke(1)
    await worker.build()
    const putForward = await saved('pki_manifests', ofCa, worker.ca.crlIssuer)
    for (const putBack of old) await putBack()
    await expect(published()).rejects.toThrow('the rows do not match the head of their set')
    await expect(worker.build()).rejects.toThrow('the rows do not match the head of their set')
    await putForward()
  })

  test.each([
    ['removed', `DELETE FROM pki_manifests ${ofCa}`],
    ['given to another CRL issuer', `UPDATE pki_manifests SET crl_issuer = REVERSE(crl_issuer) ${ofCa}`],
    ['edited', `UPDATE pki_manifests SET segments = '{}' ${ofCa}`],
  ])('%s: refused', async (_, attack) => {
    await worker.revoke(1)
    await worker.build()
    const putBack = await saved('pki_manifests', ofCa, worker.ca.crlIssuer)
    await sql(attack, worker.ca.crlIssuer)
    await expect(worker.manifest()).rejects.toBeInstanceOf(DamagedRow)
    await sql('DELETE FROM pki_manifests WHERE crl_issuer = REVERSE(UNHEX(?))', worker.ca.crlIssuer)
    await putBack()
    expect((await worker.build()).complete.serials).toHaveLength(1)
  })
})

test('fingerprints that are deleted or edited in SQL are made again from the entries', async () => {
  const rows = await worker.revoke(3)
  await worker.build()
  const [{ id } = {}] = (await worker.manifest()).sites.default?.segments ?? []
  await sql('UPDATE pki_fingerprints SET fingerprints = REVERSE(fingerprints) WHERE id = ?', id ?? '')
  expect(await worker.node.listed.find(worker.ca.crlIssuer, rows[2]?.serial ?? '')).toBeDefined()
  await sql('DELETE FROM pki_fingerprints WHERE id = ?', id ?? '')
  expect(await nodeAt(worker.node.database).listed.find(worker.ca.crlIssuer, rows[0]?.serial ?? '')).toBeDefined()
})

test('CRL numbers whose row is put back go on behind the lists that are out', async () => {
  await worker.build()
  const putBack = await saved('pki_crl_numbers', ofCa, worker.ca.crlIssuer)
  await worker.build()
  await worker.build()
  await putBack()
  expect((await worker.build()).complete.number).toBe(4)
})

describe('the count of revocations', () => {
  test.each([
    ['removed', `DELETE FROM pki_ledgers ${ofCa}`],
    ['edited', `UPDATE pki_ledgers SET last = 1 ${ofCa}`],
  ])('%s: an alarm, and it is where it was', async (_, attack) => {
    const rows = await worker.revoke(4)
    await worker.build()
    await sql(attack, worker.ca.crlIssuer)
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
    expect(worker.alarms()).toHaveLength(1)
    expect(worker.alarms()[0]).toMatch(
      /^the count of revocations was changed in the database: it is at 0, and 4 have been given/,
    )
    rows.push(...(await worker.revoke(1)))
    expect(rows[4]?.seq).toBe(5)
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
    expect(worker.alarms()).toHaveLength(1)
  })

  test('put back, and its revocations removed: an alarm, no number is given twice, and no list forgets them', async () => {
    const rows = await worker.revoke(2)
    const putBack = await saved('pki_ledgers', ofCa, worker.ca.crlIssuer)
    rows.push(...(await worker.revoke(3)))
    await worker.build()
    await putBack()
    await sql(`DELETE FROM pki_revocations ${ofCa} AND seq > 2`, worker.ca.crlIssuer)
    await worker.node.builder.absorb(worker.ca.crlIssuer, 'default')
    expect(worker.alarms()).toEqual([
      'the count of revocations was changed in the database: it is at 2, and 5 have been given',
    ])
    rows.push(...(await worker.revoke(1)))
    expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
  })
})

test('rows that nobody recorded are neither listed nor counted, and hide no revocation', async () => {
  const rows = await worker.revoke(3)
  const names = (await sql('SHOW COLUMNS FROM pki_revocations')).map(({ Field }) => String(Field))
  const copy = async (changes: Readonly<Record<string, string>>) => {
    const values = names.map((name) => changes[name] ?? `\`${name}\``)
    const text = `INSERT INTO pki_revocations (${names.map((name) => `\`${name}\``).join()}) SELECT ${values.join()}`
    await sql(`${text} FROM pki_revocations ${ofCa} AND seq = 1`, worker.ca.crlIssuer)
  }
  await copy({ id: 'UUID()', serial: "X'0701'", seq: '900000000000000' })
  await copy({ id: 'UUID()', serial: "X'0702'", seq: '0' })
  expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
  rows.push(...(await worker.revoke(1)))
  expect(rows[3]?.seq).toBe(4)
  expect((await worker.build()).complete.serials).toEqual(serialsOf(rows))
})
