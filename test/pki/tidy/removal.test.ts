import { afterAll, beforeAll, expect, test } from 'vitest'
import { crlsTable } from '../../../src/engines/pki/crl/tables.ts'
import { Removal } from '../../../src/engines/pki/removal.ts'
import { ledgersTable, queueTable } from '../../../src/engines/pki/revocation/tables.ts'
import { createTidyWorld, crlIssuerOf, fresh, hours, revoke, type TidyWorld, tidy } from './world.ts'

let world: TidyWorld
beforeAll(async () => {
  world = await createTidyWorld()
})
afterAll(() => world?.[Symbol.asyncDispose]())

const count = async (table: string, column: string, value: string | Buffer): Promise<number> =>
  Number((await world.sql(`SELECT COUNT(*) AS n FROM ${table} WHERE ${column} = ?`, [value]))[0]?.n)

/**
 * A mount with a certificate, a revocation, an ended run, many requests for revocation, and the rows of its CRL issuer.
 */
async function used(): Promise<string> {
  const { node, clock } = world
  const { database } = node
  const mount = await world.mount()
  const certificate = fresh(mount, 'gone', clock.wall() + hours)
  await node.certificates.store(certificate)
  await revoke(node, [certificate])
  await tidy(node, mount, { certStore: true })
  await database.transaction(async (tx) => {
    const requests = Array.from({ length: 450 }, (_, n) => ({
      ...{ mount, serial: n.toString(16).padStart(40, '0'), site: 'north', requestedAt: 1 },
    }))
    await database.table(queueTable).insertMany(tx, requests)
    const empty = Buffer.alloc(0)
    await database.table(crlsTable).insert(tx, {
      ...{
        mount,
        crlIssuer: crlIssuerOf(mount),
        site: 'default',
        scope: 'local',
        kind: 'complete',
        shards: 0,
        shard: 0,
      },
      ...{ number: 1, thisUpdate: 1, nextUpdate: 2, bytes: 0, head: empty, tail: empty, parts: [], covered: {} },
      sha256: Buffer.alloc(32),
    })
    await database.table(ledgersTable).insert(tx, { crlIssuer: crlIssuerOf(mount), site: 'default', last: 1 })
  })
  return mount
}

test('a removed mount loses its lists, queue and runs, in portions; the data of its CRL issuer stays', async () => {
  const [mount, other] = [await used(), await used()]
  const { node } = world
  const removal = new Removal({
    ...node,
    materials: { removeSome: async () => 0 },
    roles: { removeSome: async () => 0 },
  })
  const lease = await node.database.jobLease('sweep mounts', 60)
  const claim = { job: 'sweep mounts', fence: lease?.fence ?? 0n }
  const left: number[] = []
  while (await removal.removeSome({ uuid: mount, path: 'pki/', type: 'pki', config: {} }, claim))
    left.push(await count('pki_revocation_queue', 'mount', mount))
  await lease?.release()
  expect(left).toContain(250)
  expect(left).toContain(50)
  const tables = [
    'pki_certificates',
    'pki_revocations',
    'pki_revocation_queue',
    'pki_crls',
    'pki_tidies',
    'pki_authorities',
  ]
  for (const table of tables) {
    expect(await count(table, 'mount', mount), table).toBe(0)
    expect(await count(table, 'mount', other), table).toBeGreaterThan(0)
  }
  expect(node.lists.withdrawn).toEqual([`${mount} ${crlIssuerOf(mount)}`])
  expect(await count('pki_ledgers', 'crl_issuer', Buffer.from(crlIssuerOf(mount), 'hex'))).toBe(1)
  expect(await world.sql('SELECT name FROM tallies WHERE name LIKE ?', [`%-${mount}-%`])).toEqual([])
})
