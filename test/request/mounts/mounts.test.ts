import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { Engine, Uuids } from '../../../src/engine.ts'
import { ApiError } from '../../../src/errors.ts'
import { describeMount } from '../../../src/request/mounts/mount.ts'
import { Mounts } from '../../../src/request/mounts/mounts.ts'
import { createMountSet } from '../../../src/request/mounts/rows.ts'
import type { Mount } from '../../../src/route.ts'
import type { Database } from '../../../src/store/database.ts'
import type { Transaction } from '../../../src/store/reader.ts'
import { runJob } from '../../auth/world.ts'
import { open } from '../../store/support.ts'
import type { TestDatabase } from '../../support/database.ts'
import { createMigrated } from '../../support/template/migrated.ts'

let schema: TestDatabase
let database: Database
let mounts: Mounts
const called: string[] = []
let retained: Uuids = new Set<string>()
let pristine = true
const engine = (type: string): Engine => ({
  type,
  context: undefined,
  routes: [],
  pristine: () => pristine,
  // A transaction may run several times; the call counts when it is committed.
  onMount: async (mount: Mount, tx: Transaction) => tx.onCommit(async () => void called.push(`mount ${mount.path}`)),
  retain: (uuids) => {
    retained = uuids
  },
  removeSome: async (mount: Mount) => called.push(`unmount ${mount.path}`) === 0,
})
const engines = new Map(['transit', 'pki'].map((type) => [type, engine(type)]))
const builtin = [
  { path: 'sys/', type: 'system', description: 'system' },
  { path: 'auth/token/', type: 'token', description: 'tokens' },
]
const make = (on: Database): Mounts => new Mounts({ database: on, engines, builtin, clock: systemClock })

beforeAll(async () => {
  schema = await createMigrated()
  database = await open(schema.url)
  await database.start()
  await database.transaction((tx) => createMountSet(database, tx))
  mounts = make(database)
})
beforeEach(async () => {
  for (const { path } of await mounts.list()) if (!builtin.some((one) => one.path === path)) await mounts.disable(path)
  await runJob(database, mounts.sweep)
  called.length = 0
  pristine = true
})
afterAll(async () => {
  await database[Symbol.asyncDispose]()
  await schema[Symbol.asyncDispose]()
})

const pathOf = async (path: string) => (await mounts.find(path))?.path
const refusal = async (work: Promise<void>): Promise<string> => {
  try {
    await work
  } catch (error) {
    if (error instanceof ApiError) return `${error.status} ${error.message}`
    throw error
  }
  return 'done'
}

test('a mount is found by every path below it and by its own name, and by nothing else', async () => {
  await mounts.enable({ path: 'transit', type: 'transit' })
  await mounts.enable({ path: 'team/a/transit', type: 'transit' })
  expect(await pathOf('transit/keys/a')).toBe('transit/')
  expect(await pathOf('transit')).toBe('transit/')
  expect(await pathOf('team/a/transit/x')).toBe('team/a/transit/')
  expect(await pathOf('sys/mounts/transit')).toBe('sys/')
  expect(await pathOf('auth/token/lookup-self')).toBe('auth/token/')
  for (const path of ['transitx/a', 'team', 'team/a', 'auth', 'auth/tokens/x', 'Transit/x', '', '__proto__']) {
    expect(await pathOf(path)).toBe(undefined)
  }
})

test('case is kept: two names that differ in case are two mounts', async () => {
  await mounts.enable({ path: 'Case', type: 'transit' })
  await mounts.enable({ path: 'case', type: 'pki' })
  expect((await mounts.find('Case/x'))?.type).toBe('transit')
  expect((await mounts.find('case/x'))?.type).toBe('pki')
})

test('a listing shows the settings as sent, with an accessor of the type and eight hexadecimal digits', async () => {
  await mounts.enable({
    path: 'tt/',
    type: 'transit',
    description: 'keys',
    config: {
      options: null,
      default_lease_ttl: '1h',
      max_lease_ttl: '',
      force_no_cache: false,
      listing_visibility: 'hidden',
    },
    options: { version: '1' },
  })
  const record = (await mounts.list()).find(({ path }) => path === 'tt/')
  expect(record && describeMount(record)).toEqual({
    accessor: expect.stringMatching(/^transit_[0-9a-f]{8}$/),
    config: { default_lease_ttl: 3600, max_lease_ttl: 0, force_no_cache: false, listing_visibility: 'hidden' },
    deprecation_status: 'supported',
    description: 'keys',
    external_entropy_access: false,
    local: false,
    options: { version: '1' },
    plugin_version: '',
    running_plugin_version: '',
    running_sha256: '',
    seal_wrap: false,
    type: 'transit',
    uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
  })
  expect((await mounts.list()).map(({ path }) => path)).toEqual(['auth/token/', 'sys/', 'tt/'])
})

test.each([
  ['same path', 'transit', 'path is already in use at transit/'],
  ['below', 'transit/below', 'path is already in use at transit/'],
  ['above', 'team', 'path is already in use at team/a/'],
])('a path that is taken is refused: %s', async (_, path, text) => {
  await mounts.enable({ path: 'transit', type: 'transit' })
  await mounts.enable({ path: 'team/a', type: 'pki' })
  expect(await refusal(mounts.enable({ path, type: 'transit' }))).toBe(`400 ${text}`)
})

test.each(['v1', 'ui', 'sys', 'auth', 'certs', 'cubbyhole', 'identity', 'sys/x', 'v1/transit'])(
  '%s is reserved',
  async (path) => {
    expect(await refusal(mounts.enable({ path, type: 'transit' }))).toMatch(/^400 mount paths that begin with/)
  },
)

test.each(['', '/', 'a//b', '*', 'a+', 'a b', 'a/../b', '%2e', 'ä', 'x'.repeat(201)])(
  '%j is no mount path',
  async (path) => {
    expect(await refusal(mounts.enable({ path, type: 'transit' }))).toMatch(/^400 /)
  },
)

test('types and settings are checked, and refusals name the fault', async () => {
  const enable = (type: string, config?: unknown) => refusal(mounts.enable({ path: 'x', type, config }))
  expect(await enable('')).toBe('400 backend type must be specified as a string')
  expect(await enable('zzz')).toBe('400 plugin not found in the catalog: zzz')
  expect(await enable('transit', [])).toBe('400 config must be an object')
  expect(await enable('transit', { default_lease_ttl: '2h', max_lease_ttl: '1h' })).toContain(
    'max_lease_ttl, which is 3600 s',
  )
  expect(await enable('transit', { default_lease_ttl: 'soon' })).toContain('field "default_lease_ttl"')
  expect(await enable('transit', { listing_visibility: 'all' })).toContain('must be one of "", hidden, unauth')
  expect(await pathOf('x/a')).toBe(undefined)
})

test('a mount of the first initialisation is taken over once, by its own type, while nothing is in it', async () => {
  await mounts.enable({ path: 'pki', type: 'pki', touched: false })
  const before = await mounts.find('pki/x')
  expect(await refusal(mounts.enable({ path: 'pki', type: 'transit' }))).toBe('400 path is already in use at pki/')
  pristine = false
  expect(await refusal(mounts.enable({ path: 'pki', type: 'pki' }))).toBe('400 path is already in use at pki/')
  pristine = true
  await mounts.enable({ path: 'pki', type: 'pki', config: { max_lease_ttl: '87600h' }, description: 'mine' })
  const mount = await mounts.find('pki/x')
  expect([mount?.uuid, mount?.config.max_lease_ttl]).toEqual([before?.uuid, 315360000])
  expect(await refusal(mounts.enable({ path: 'pki', type: 'pki' }))).toBe('400 path is already in use at pki/')
  expect(called).toEqual(['mount pki/'])
})

test('of two that enable the same path at once one wins, and the other leaves nothing behind', async () => {
  const second = make(database)
  const outcomes = await Promise.all([
    refusal(mounts.enable({ path: 'race', type: 'transit' })),
    refusal(second.enable({ path: 'race', type: 'transit' })),
  ])
  expect(outcomes.sort()).toEqual(['400 path is already in use at race/', 'done'])
  expect((await mounts.list()).filter(({ path }) => path === 'race/').length).toBe(1)
  await runJob(database, mounts.sweep)
  const times = (call: string) => called.filter((one) => one === call).length
  expect(times('mount race/') - times('unmount race/')).toBe(1)
})

test('disable removes the mount, a job its data; a missing mount is not an error; built-in mounts stay', async () => {
  await mounts.enable({ path: 'gone', type: 'transit' })
  await mounts.disable('gone/')
  expect(await pathOf('gone/x')).toBe(undefined)
  expect(called).toEqual(['mount gone/'])
  await runJob(database, mounts.sweep)
  expect(called).toEqual(['mount gone/', 'unmount gone/'])
  await mounts.disable('gone')
  expect(await refusal(mounts.disable('sys'))).toBe('400 cannot unmount "sys/"')
  expect(await refusal(mounts.disable('auth'))).toBe('400 cannot unmount "auth/"')
  expect(called.length).toBe(2)
})

test('the engines are told which mounts there still are, before a request finds the removed one gone', async () => {
  for (const path of ['left', 'kept']) await mounts.enable({ path, type: 'transit' })
  const [kept, left] = [await mounts.find('kept/x'), await mounts.find('left/x')]
  const uuids = [kept?.uuid ?? 'none', left?.uuid ?? 'none']
  expect(uuids.map((uuid) => retained.has(uuid))).toEqual([true, true])
  await mounts.disable('left')
  expect(await mounts.find('left/x')).toBe(undefined)
  expect(uuids.map((uuid) => retained.has(uuid))).toEqual([true, false])
})

test('another worker sees every change as soon as it is acknowledged', async () => {
  await using other = await open(schema.url)
  await other.start()
  const elsewhere = make(other)
  for (let round = 0; round < 5; round++) {
    expect(await elsewhere.find('seen/x')).toBe(undefined)
    await mounts.enable({ path: 'seen', type: 'transit' })
    expect((await elsewhere.find('seen/x'))?.path).toBe('seen/')
    await mounts.disable('seen')
  }
})

test('a mount row that is deleted, edited or copied in the database stops every look-up, not only its own', async () => {
  await using attacked = await createMigrated()
  await using victim = await open(attacked.url)
  await victim.transaction((tx) => createMountSet(victim, tx))
  await make(victim).enable({ path: 'a', type: 'transit' })
  await make(victim).enable({ path: 'b', type: 'transit' })
  await using sql = await createConnection(attacked.url)
  const attack = async (statement: string, undo: string): Promise<void> => {
    await sql.query(statement)
    await expect(make(victim).list()).rejects.toThrow('mounts')
    await expect(async () => make(victim).find('b/x')).rejects.toThrow('mounts')
    await sql.query(undo)
  }
  await sql.query('CREATE TABLE kept AS SELECT * FROM mounts')
  const restore = 'REPLACE INTO mounts SELECT * FROM kept'
  await attack("DELETE FROM mounts WHERE path = 'a/'", restore)
  await attack("UPDATE mounts SET path = 'c/' WHERE path = 'a/'", restore)
  await attack("UPDATE mounts SET type = 'pki' WHERE path = 'a/'", restore)
  await attack("DELETE FROM heads WHERE `set` = 'mounts'", 'SELECT 1')
})

test('tune changes only the given settings, for every worker', async () => {
  await using other = await open(schema.url)
  await other.start()
  const elsewhere = make(other)
  const config = async () => (await elsewhere.list()).find(({ path }) => path === 'tuned/')
  await mounts.enable({ path: 'tuned', type: 'transit', config: { max_lease_ttl: '2h', listing_visibility: 'unauth' } })
  await mounts.tune('tuned', { config: { default_lease_ttl: '1h', max_lease_ttl: '' }, description: 'd' })
  expect(await config()).toMatchObject({
    description: 'd',
    options: null,
    config: { default_lease_ttl: 3600, max_lease_ttl: 7200, force_no_cache: false, listing_visibility: 'unauth' },
  })
  await mounts.tune('tuned/', { config: { default_lease_ttl: 'system', listing_visibility: '' }, options: { a: '1' } })
  expect((await config())?.config).toEqual({ default_lease_ttl: 0, max_lease_ttl: 7200, force_no_cache: false })
  await mounts.tune('tuned', { config: {}, options: { a: '', b: '2' } })
  expect((await config())?.options).toEqual({ b: '2' })
  const tune = (path: string, changes: Record<string, unknown>) => refusal(mounts.tune(path, { config: changes }))
  expect(await tune('tuned', { default_lease_ttl: '3h' })).toBe(
    '400 default_lease_ttl must not be longer than max_lease_ttl, which is 7200 s here',
  )
  expect(await tune('tuned', { max_lease_ttl: 'soon' })).toMatch(/^400 Field validation failed: .*"max_lease_ttl"/)
  expect(await tune('nope', {})).toBe('400 tune of path "nope/" failed: no mount entry found')
  expect(await tune('sys', {})).toBe('400 cannot tune "sys/"')
})

test('a moved mount is at its new path alone when the move is answered, on every worker, with the same uuid', async () => {
  await using other = await open(schema.url)
  await other.start()
  const elsewhere = make(other)
  await mounts.enable({ path: 'from', type: 'transit' })
  const uuid = (await elsewhere.find('from/x'))?.uuid
  const id = await mounts.move('from/', 'to/deeper')
  expect(await elsewhere.find('from/x')).toBe(undefined)
  expect((await elsewhere.find('to/deeper/x'))?.uuid).toBe(uuid)
  expect(await elsewhere.findRemount(id)).toMatchObject({ source: 'from/', target: 'to/deeper/', mount: uuid })
  expect(await elsewhere.findRemount('00000000-0000-4000-8000-000000000000')).toBe(undefined)
})

test('a mount is not moved onto, above or below another one, nor to a reserved path', async () => {
  await mounts.enable({ path: 'one', type: 'transit' })
  await mounts.enable({ path: 'two/a', type: 'transit' })
  const move = (from: string, to: string) => refusal(mounts.move(from, to).then(() => undefined))
  for (const to of ['two/a', 'two', 'two/a/b']) {
    expect(await move('one', to)).toBe('400 path already in use at "two/a/"')
  }
  expect(await move('one', 'one')).toBe('400 path already in use at "one/"')
  expect(await move('one', 'one/below')).toBe('done')
  expect(await move('one/below', 'sys/x')).toMatch(/^400 mount paths that begin with "sys\/" are reserved/)
  expect(await move('one/below', 'x/tune')).toMatch(/^400 a mount path must not end in "\/tune"/)
  expect(await move('nope', 'x')).toBe('400 no matching mount at "nope/"')
  expect(await move('sys', 'x')).toBe('400 cannot remount "sys/"')
  expect(await move('auth/token', 'x')).toBe('400 cannot remount "auth/token/"')
})

test('two moves to one path at once: one is made', async () => {
  await mounts.enable({ path: 'a1', type: 'transit' })
  await mounts.enable({ path: 'a2', type: 'transit' })
  const second = make(database)
  const outcomes = await Promise.all(
    [mounts.move('a1', 'goal'), second.move('a2', 'goal')].map((move) => refusal(move.then(() => undefined))),
  )
  expect(outcomes.sort()).toEqual(['400 path already in use at "goal/"', 'done'])
})

test('a reload reaches the engine of every worker before its next request finds the mount', async () => {
  await using other = await open(schema.url)
  await other.start()
  const heard: string[] = []
  const reloading = new Map([
    ['transit', { ...engine('transit'), reload: async (mount: Mount) => void heard.push(mount.path) }],
    ['pki', engine('pki')],
  ])
  const elsewhere = new Mounts({ database: other, engines: reloading, builtin, clock: systemClock })
  await mounts.enable({ path: 'r1', type: 'transit' })
  await mounts.enable({ path: 'r2', type: 'transit' })
  await elsewhere.find('r1/x')
  expect(heard).toEqual([])
  await mounts.reload((await mounts.list()).filter(({ path }) => path === 'r1/'))
  expect(heard).toEqual([])
  expect((await elsewhere.find('r2/x'))?.path).toBe('r2/')
  expect(heard).toEqual(['r1/'])
  for (let round = 0; round < 3; round++) await elsewhere.find('r1/x')
  expect(heard).toEqual(['r1/'])
})

test('a move is forgotten after 30 days, and one whose time was edited is not', async () => {
  let ahead = 0
  const clock = { ...systemClock, wall: () => systemClock.wall() + ahead }
  const later = new Mounts({ database, engines, builtin, clock })
  const move = async (from: string, to: string) => {
    await later.enable({ path: from, type: 'transit' })
    return later.move(from, to)
  }
  const old = await move('m1', 'n1')
  ahead += 29 * 86_400_000
  const [young, edited] = [await move('m2', 'n2'), await move('m3', 'n3')]
  const sql = await createConnection(schema.url)
  await sql.query('UPDATE remounts SET moved_at = 1 WHERE id = ?', [edited])
  const there = async () => (await sql.query<RowDataPacket[]>('SELECT id FROM remounts'))[0].map(({ id }) => id)
  await runJob(database, later.retention)
  expect(await later.findRemount(old)).toBeDefined()
  ahead += 2 * 86_400_000
  await runJob(database, later.retention)
  expect(await later.findRemount(old)).toBe(undefined)
  expect(await later.findRemount(young)).toBeDefined()
  expect(await there()).toContain(edited)
  await sql.query('DELETE FROM remounts WHERE id = ?', [edited])
  await sql.end()
})
