import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPolicies, Policies } from '../../src/auth/policies.ts'
import { Tokens } from '../../src/auth/tokens.ts'
import { systemClock } from '../../src/clock.ts'
import type { Engine } from '../../src/engine.ts'
import { Mounts } from '../../src/request/mounts/mounts.ts'
import { createMountSet } from '../../src/request/mounts/rows.ts'
import type { Database } from '../../src/store/database.ts'
import { service } from '../auth/world.ts'
import { Line } from '../store/line.ts'
import { open, quiet } from '../store/support.ts'
import type { TestDatabase } from '../support/database.ts'
import { noLeases } from '../support/noleases.ts'
import { createMigrated } from '../support/template/migrated.ts'

/**
 * Round trips to the database that a change takes, in a process without caches, so that no polls are among them: the
 * opening of the transaction with its reads, and its writes with the COMMIT and the look at the registrations after it.
 */

let schema: TestDatabase
let line: Line
let database: Database
let mounts: Mounts
let policies: Policies
let tokens: Tokens
const revocable: string[] = []
const engine: Engine = { type: 'transit', context: undefined, routes: [] }

beforeAll(async () => {
  schema = await createMigrated()
  line = await Line.open(schema.url)
  database = await open(line.url, { poolSize: 1 })
  await database.transaction(async (tx) => {
    await createMountSet(database, tx)
    await createPolicies(database, tx, 1)
  })
  mounts = new Mounts({ database, engines: new Map([['transit', engine]]), builtin: [], clock: systemClock })
  policies = new Policies({ database, clock: systemClock })
  const tokenMac = (credential: Uint8Array) => createHash('sha256').update(credential).digest()
  const audit = { guess: randomBytes(32), device: () => randomBytes(32), hashAccessor: String }
  const keys = { tokenMac, audit }
  tokens = new Tokens({ database, keys, log: quiet, clock: systemClock, epoch: 1, leases: () => noLeases })
  // Statements are prepared, and rows verified, once.
  for (const name of ['before', 'later']) {
    await mounts.enable({ path: name, type: 'transit' })
    await mounts.tune(name, { config: {} })
    await mounts.move(name, `${name}-moved`)
    await mounts.disable(`${name}-moved`)
    for (const text of ['path "a" {}', 'path "b" {}']) await policies.write(name, text)
    await policies.write('kept', 'path "c" {}')
    revocable.push((await tokens.create(service(null))).row.id, (await tokens.create(service(null))).row.id)
    await tokens.revoke(revocable.pop() ?? '')
    await tokens.removeRevoked()
  }
})
afterAll(async () => {
  await database?.[Symbol.asyncDispose]()
  await line?.[Symbol.asyncDispose]()
  await schema?.[Symbol.asyncDispose]()
})

async function roundTrips(change: () => Promise<unknown>): Promise<number> {
  const before = line.commands
  await change()
  return line.commands - before
}

// In this order: a mount is made, tuned, moved and disabled.
describe('round trips', { shuffle: false }, () => {
  test.each<[string, () => Promise<unknown>, number]>([
    // One more verifies the rows of the change before.
    ['a policy is made', () => policies.write('new', 'path "d" {}'), 3],
    ['a policy is replaced', () => policies.write('kept', 'path "e" {}'), 3],
    // One looks for children and leases; the row is removed later.
    ['a token is revoked', () => tokens.revoke(revocable.pop() ?? ''), 3],
    ['a mount is made', () => mounts.enable({ path: 'made', type: 'transit' }), 2],
    ['a mount is tuned', () => mounts.tune('made', { config: {} }), 2],
    ['a mount is moved', () => mounts.move('made', 'moved'), 2],
    ['a mount is disabled', () => mounts.disable('moved'), 2],
  ])('%s', async (_, change, most) => {
    expect(await roundTrips(change)).toBeLessThanOrEqual(most)
    // Revoked tokens are removed before the next one.
    await tokens.removeRevoked()
  })
})
