import { afterAll, beforeAll, expect, test } from 'vitest'
import { LeaseLost } from '../../../src/store/faults.ts'
import { type CertificateWorld, createCertificateWorld, newMount } from './world.ts'

let world: CertificateWorld
beforeAll(async () => {
  world = await createCertificateWorld()
})
afterAll(() => world?.[Symbol.asyncDispose]())

const rowsOf = async (table: string, mount: string): Promise<number> =>
  Number((await world.sql(`SELECT COUNT(*) AS n FROM ${table} WHERE mount = ?`, [mount]))[0]?.n)
const tallies = async (mount: string) =>
  (await world.sql('SELECT name FROM tallies WHERE name LIKE ?', [`%-${mount}-%`])).length

test('a removed mount loses its certificates, leases and counts in bounded portions, and no other does', async () => {
  const { node, mount, sql } = world
  const { uuid } = mount
  const { certificates, engine, database, fresh, issue } = node
  const other = newMount()
  await certificates.store(fresh({ mount: other.uuid }))
  expect([await certificates.empty(uuid), await certificates.empty(other.uuid)]).toEqual([true, false])
  await issue(await node.token())
  await sql(`INSERT INTO pki_certificates SELECT UUID(), '${uuid}', 'north', UNHEX(LPAD(HEX(seq), 40, '0')), '', 'x', 1, 1
    FROM seq_1_to_1200`)
  expect(await certificates.empty(uuid)).toBe(false)
  const lease = await database.jobLease('sweep mounts', 60)
  const claim = { job: 'sweep mounts', fence: lease?.fence ?? 0n }
  const left: number[] = []
  while (await engine.removeSome?.(mount, claim)) left.push(await rowsOf('pki_certificates', uuid))
  const steps = [1201, ...left]
  for (const [index, rows] of left.entries()) expect((steps[index] ?? 0) - rows).toBeLessThanOrEqual(500)
  for (const table of ['pki_certificates', 'leases']) expect(await rowsOf(table, uuid)).toBe(0)
  expect([await tallies(uuid), await certificates.count(uuid)]).toEqual([0, 0])
  expect([await rowsOf('pki_certificates', other.uuid), await tallies(other.uuid)]).toEqual([1, 1])
  await lease?.release()
})

test('nothing is removed under a lease that was taken over', async () => {
  const { node } = world
  const mount = newMount()
  await node.certificates.store(node.fresh({ mount: mount.uuid }))
  const lease = await node.database.jobLease('sweep mounts', 60)
  const claim = { job: 'sweep mounts', fence: (lease?.fence ?? 0n) - 1n }
  await expect(node.certificates.removeSome(mount, claim)).rejects.toBeInstanceOf(LeaseLost)
  expect(await rowsOf('pki_certificates', mount.uuid)).toBe(1)
})
