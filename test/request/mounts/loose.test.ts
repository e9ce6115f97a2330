import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/clock.ts'
import type { Engine } from '../../../src/engine.ts'
import { looseMountsTable } from '../../../src/request/mounts/loose.ts'
import { Mounts } from '../../../src/request/mounts/mounts.ts'
import { remountsTable } from '../../../src/request/mounts/remounts.ts'
import { createMountSet } from '../../../src/request/mounts/rows.ts'
import type { Mount } from '../../../src/route.ts'
import type { Database } from '../../../src/store/database.ts'
import type { Transaction } from '../../../src/store/reader.ts'
import { openSql, type Sql } from '../../attack/sql.ts'
import { open } from '../../store/support.ts'
import type { TestDatabase } from '../../support/database.ts'
import { createMigrated } from '../../support/template/migrated.ts'

/** Rows below removed mounts are deleted, over crashes too; rows below existing mounts are not. */

let schema: TestDatabase
let sql: Sql
let database: Database
let mounts: Mounts
let aheadMilliseconds = 0
const clock: Clock = { ...systemClock, wall: () => systemClock.wall() + aheadMilliseconds }
/** Uuids of mounts below which the engine keeps something. */
const kept = new Set<string>()
let fail: 'mount' | 'unmount' | undefined

const engine: Engine = {
  type: 'transit',
  context: undefined,
  routes: [],
  async onMount({ uuid }: Mount, tx: Transaction) {
    const [source, target] = ['made/', 'with/']
    await database.table(remountsTable).insert(tx, { mount: uuid, source, target, movedAt: clock.wall() })
    if (fail === 'mount') throw new Error('the process died')
    kept.add(uuid)
  },
  async removeSome({ uuid }: Mount) {
    if (fail === 'unmount') throw new Error('the process died')
    return kept.delete(uuid)
  },
}

beforeAll(async () => {
  schema = await createMigrated()
  sql = await openSql(schema.url)
  database = await open(schema.url)
  await database.start()
  await database.transaction((tx) => createMountSet(database, tx))
  mounts = new Mounts({ database, engines: new Map([['transit', engine]]), builtin: [], clock })
})
afterEach(async () => {
  fail = undefined
  await sweepLater()
})
afterAll(async () => {
  await database?.[Symbol.asyncDispose]()
  await sql?.[Symbol.asyncDispose]()
  await schema?.[Symbol.asyncDispose]()
})

const enable = (path: string) => mounts.enable({ path, type: 'transit' })
const loose = async () => (await sql.rows('SELECT * FROM loose_mounts')).length

async function sweep(): Promise<void> {
  const lease = await database.jobLease(mounts.sweep.name, 60)
  await mounts.sweep.run(new AbortController().signal, lease?.fence ?? 0n).finally(() => lease?.release())
}

async function sweepLater(): Promise<void> {
  aheadMilliseconds += 11 * 60_000
  await sweep()
}

test('a mount that was made leaves nothing for the job', async () => {
  await enable('whole')
  expect(await loose()).toBe(0)
  await sweepLater()
  expect(kept.size).toBe(1)
  await mounts.disable('whole')
  await sweep()
  expect(kept.size).toBe(0)
  await sweepLater()
  expect(await loose()).toBe(0)
})

test('a crash of the job leaves rows that its next run removes', async () => {
  await enable('a')
  await enable('b')
  fail = 'unmount'
  await mounts.disable('a')
  await expect(sweep()).rejects.toThrow('1 mounts were not cleared')
  expect(kept.size).toBe(2)
  fail = undefined
  await sweep()
  expect(kept.size).toBe(1)
  expect(await loose()).toBe(1)
  await sweepLater()
  expect(await loose()).toBe(0)
  expect((await mounts.list()).map(({ path }) => path)).toEqual(['b/'])
  await mounts.disable('b')
})

test('rows that an older request still wrote are removed too', async () => {
  await enable('late')
  const [mount] = await mounts.list()
  await mounts.disable('late')
  await sweep()
  kept.add(mount?.uuid ?? '')
  await sweep()
  expect(kept.size).toBe(1)
  await sweepLater()
  expect(kept.size).toBe(0)
})

test('a job that fails tries again', async () => {
  await enable('again')
  fail = 'unmount'
  await mounts.disable('again')
  await expect(sweepLater()).rejects.toThrow()
  expect(await loose()).toBe(1)
  fail = undefined
  await sweep()
  expect([kept.size, await loose()]).toEqual([0, 0])
})

test('of a mount whose engine fails nothing is left', async () => {
  const made = async () => (await sql.rows('SELECT * FROM remounts')).length
  const before = await made()
  fail = 'mount'
  await expect(enable('half')).rejects.toThrow('the process died')
  fail = undefined
  expect([await made(), await mounts.list(), await loose()]).toEqual([before, [], 0])
  await enable('half')
  expect(await made()).toBe(before + 1)
  await mounts.disable('half')
  await sweepLater()
})

const loosen = (mount: string, state: string) =>
  database.transaction((tx) => {
    const row = { mount, path: 'earlier/', type: 'transit', state, since: clock.wall() }
    return database.table(looseMountsTable).insert(tx, row)
  })

test('rows below a mount that an earlier release began and never finished are removed, once it cannot finish it', async () => {
  const mount = randomUUID()
  kept.add(mount)
  await loosen(mount, 'making')
  await sweep()
  expect([kept.size, await loose()]).toEqual([1, 1])
  await sweepLater()
  expect([kept.size, await loose()]).toEqual([0, 0])
})

test('an old row which marks an existing mount as gone removes nothing of it', async () => {
  await enable('standing')
  const [mount] = await mounts.list()
  await loosen(mount?.uuid ?? '', 'gone')
  await sweepLater()
  expect([kept.size, await loose()]).toEqual([1, 0])
  await mounts.disable('standing')
})

test('a path can be mounted again at once, and the job removes nothing of the new mount', async () => {
  await enable('anew')
  const [old] = await mounts.list()
  await mounts.disable('anew')
  await enable('anew')
  const [mount] = await mounts.list()
  expect(mount?.uuid).not.toBe(old?.uuid)
  expect(await Promise.all([old, mount].map(async (one) => mounts.removed(one?.uuid ?? '')))).toEqual([true, false])
  expect(await mounts.removed('00000000-0000-4000-8000-000000000000')).toBe(false)
  expect(kept).toEqual(new Set([old?.uuid, mount?.uuid]))
  await sweep()
  expect(kept).toEqual(new Set([mount?.uuid]))
  await mounts.disable('anew')
})

test('a forged row is refused, and takes nothing', async () => {
  await enable('victim')
  const [mount] = await mounts.list()
  await mounts.disable('nothing')
  await enable('other')
  await mounts.disable('other')
  await sweep()
  const row = await sql.row('SELECT * FROM loose_mounts ORDER BY since DESC LIMIT 1')
  await sql.put('loose_mounts', { ...row, mount: mount?.uuid ?? '' })
  await enable('beside')
  await mounts.disable('beside')
  await expect(sweepLater()).rejects.toThrow()
  expect(kept).toEqual(new Set([mount?.uuid]))
  expect(await loose()).toBe(1)
  await sql.rows('DELETE FROM loose_mounts')
  await mounts.disable('victim')
})
