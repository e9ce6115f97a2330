import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import type { TransitContext } from '../../src/engines/transit/context.ts'
import { createTransit } from '../../src/engines/transit/index.ts'
import type { Mount } from '../../src/route.ts'
import { type Cluster, clock, manage, useCluster } from '../keys/support.ts'

/** The contents of a removed transit mount go in portions, completely, and without those of its neighbours. */

let cluster: Cluster
let transit: Engine<TransitContext>
useCluster(
  'removal',
  (begun) => {
    cluster = begun
    const { hsm, custody, place } = begun
    const { operations, materials, transfer } = custody
    const { managed } = manage(custody, place.database, hsm)
    const ground = { database: place.database, operations, materials, transfer, managed, clock }
    transit = createTransit({ ...ground, ringLimit: 100 })
  },
  // Strict mode keeps Ed25519 keys in the token.
  { strict: true, residentLimit: 20 },
)

const tables = ['transit_keys', 'transit_versions', 'materials', 'transit_config']

async function newMount(types: readonly string[]): Promise<Mount> {
  const mount: Mount = { uuid: randomUUID(), path: `${randomUUID()}/`, type: 'transit', config: {} }
  await cluster.place.database.transaction(async (tx) => transit.onMount?.(mount, tx))
  for (const [index, type] of types.entries()) {
    await transit.context.keys.create(mount, { name: `k${index}`, type }, 'me')
  }
  return mount
}

/** Rows below the mount in each table. */
async function left({ uuid }: Mount): Promise<number[]> {
  const counts = tables.map(async (table) => {
    const [row] = await cluster.place.sql(`SELECT COUNT(*) AS n FROM ${table} WHERE mount = ?`, [uuid])
    return Number(row?.n)
  })
  return Promise.all(counts)
}
const orphans = async () =>
  (
    await cluster.place.sql(`SELECT v.id FROM transit_versions v LEFT JOIN transit_keys k ON k.id = v.key_id
      WHERE k.id IS NULL UNION SELECT m.id FROM materials m LEFT JOIN transit_versions v ON v.key_id = m.owner
      WHERE v.id IS NULL AND m.part IN ('key', 'hmac', 'prk') AND m.state = 'active' UNION
      SELECT u.material FROM usage_counters u LEFT JOIN materials m ON m.id = u.material WHERE m.id IS NULL`)
  ).length
const tokenKeys = async () => (await cluster.hsm.find({ class: 'private', token: true })).length

/** @returns the rows that each portion took */
async function removeAll(mount: Mount, between = async (): Promise<void> => undefined): Promise<number[]> {
  const { database } = cluster.place
  const lease = await database.jobLease('removal', 60)
  const claim = { job: 'removal', fence: lease?.fence ?? 0n }
  const count = async () => (await left(mount)).reduce((sum, rows) => sum + rows, 0)
  const portions: number[] = []
  for (let before = await count(); await transit.removeSome?.(mount, claim); ) {
    const after = await count()
    portions.push(before - after)
    before = after
    await between()
  }
  return portions
}

test('every row goes in portions, whole keys at a time; the neighbour keeps all', async () => {
  const many = Array.from({ length: 70 }, (_, index) => (index % 7 === 0 ? 'hmac' : 'aes256-gcm96'))
  const [mount, neighbour] = [await newMount(many), await newMount(['aes256-gcm96', 'ecdsa-p256'])]
  await transit.context.keyImport.wrappingKey(mount.uuid, 'me')
  const kept = await left(neighbour)
  const seen: number[] = []
  const portions = await removeAll(mount, async () => void seen.push(await orphans()))
  expect(await left(mount)).toEqual([0, 0, 0, 0])
  expect(Math.max(...portions)).toBeLessThanOrEqual(4 * 32)
  expect(new Set(seen)).toEqual(new Set([0]))
  expect(await left(neighbour)).toEqual(kept)
}, 60_000)

test('a key of very many versions goes in portions too', async () => {
  const mount = await newMount(['aes256-gcm96'])
  const { place } = cluster
  // Copies: a rotation takes the token too long to do it a thousand times.
  await place.sql(
    `INSERT INTO transit_versions SELECT UUID(), v.namespace, v.mount, v.rev, v.epoch, v.mac_key_id, v.mac_format, v.mac,
      v.key_id, seq.seq, v.material, v.hmac_material, v.prk_material, v.convergent_version, v.created_at, v.managed_key,
      v.certificate_chain FROM transit_versions v JOIN seq_2_to_1000 seq WHERE v.mount = ?`,
    [mount.uuid],
  )
  const portions = await removeAll(mount)
  expect(await left(mount)).toEqual([0, 0, 0, 0])
  expect(portions.length).toBeGreaterThan(4)
  expect(Math.max(...portions)).toBeLessThanOrEqual(2 * 200 + 1)
})

test('token objects of keys that stay in the token are destroyed by the next sweep, and no other', async () => {
  const before = await tokenKeys()
  const neighbour = await newMount(['ed25519'])
  const mount = await newMount(['ed25519', 'ed25519', 'aes256-gcm96'])
  expect(await tokenKeys()).toBe(before + 3)
  await removeAll(mount)
  const { residents } = cluster.custody.objects
  expect(await residents.sweep()).toBe(2)
  expect(await tokenKeys()).toBe(before + 1)
  expect(await left(neighbour)).toEqual([1, 1, 2, 1])
  expect(await cluster.place.sql("SELECT id FROM materials WHERE state IN ('removed', 'intent')")).toEqual([])
})

test('edited rows are removed too, and hold up nothing', async () => {
  const mount = await newMount(['aes256-gcm96', 'aes256-gcm96', 'hmac'])
  const { place } = cluster
  await place.sql("UPDATE materials SET `blob` = 'x' WHERE mount = ? LIMIT 1", [mount.uuid])
  await place.sql("UPDATE transit_keys SET type = 'x' WHERE mount = ? LIMIT 1", [mount.uuid])
  await removeAll(mount)
  expect(await left(mount)).toEqual([0, 0, 0, 0])
})

test('a job that has lost its lease removes nothing', async () => {
  const mount = await newMount(['hmac'])
  const kept = await left(mount)
  const { database } = cluster.place
  const lease = await database.jobLease('lost', 60)
  await lease?.release()
  await database.jobLease('lost', 60)
  const claim = { job: 'lost', fence: lease?.fence ?? 0n }
  await expect(transit.removeSome?.(mount, claim)).rejects.toThrow('taken over')
  expect(await left(mount)).toEqual(kept)
})
