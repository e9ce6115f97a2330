import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { Engine } from '../../../src/engine.ts'
import { ApiError, badRequest } from '../../../src/errors.ts'
import { mountsTable } from '../../../src/request/mounts/mount.ts'
import { Mounts } from '../../../src/request/mounts/mounts.ts'
import { createMountSet, MountRows } from '../../../src/request/mounts/rows.ts'
import type { Database } from '../../../src/store/database.ts'
import { KnownSet } from '../../../src/store/sealed/knownset.ts'
import { open } from '../../store/support.ts'
import { createMigrated } from '../../support/template/migrated.ts'

/** Many new mounts at once, and a set of mounts that a process knows already and the database's owner changes. */

const engine: Engine = {
  ...{ type: 'transit', context: undefined, routes: [], removeSome: async () => true },
  onMount: async ({ path }) => {
    if (path === 'bad/') throw badRequest('this engine refuses')
  },
}
const make = (database: Database): Mounts =>
  new Mounts({ database, engines: new Map([['transit', engine]]), builtin: [], clock: systemClock })

const outcome = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
    return 'done'
  } catch (error) {
    return error instanceof ApiError ? `${error.status} ${error.message}` : String(error)
  }
}

/** How often there was each outcome. */
async function outcomes(work: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const all = await Promise.all(work.map(outcome))
  return Object.fromEntries(
    Object.entries(Object.groupBy(all, (one) => one)).map(([one, of]) => [one, of?.length ?? 0]),
  )
}

test('of sixty mounts at once by two workers each free path is made once; the others learn what is there', async () => {
  await using schema = await createMigrated()
  await using first = await open(schema.url)
  await using second = await open(schema.url)
  for (const database of [first, second]) await database.start()
  await first.transaction((tx) => createMountSet(first, tx))
  const workers = [make(first), make(second)]
  const enable = (paths: readonly string[]) =>
    outcomes(paths.flatMap((path) => workers.map((worker) => worker.enable({ path, type: 'transit' }))))
  const taken = (path: string) => `400 path is already in use at ${path}/`
  const numbers = Array.from({ length: 30 }, (_, n) => n)
  const different = await enable(numbers.map((n) => `different${n}`))
  expect(different.done).toBe(30)
  expect(Object.keys(different).toSorted()).toEqual(['done', ...numbers.map((n) => taken(`different${n}`))].toSorted())
  expect(await enable(numbers.map(() => 'same'))).toEqual({ done: 1, [taken('same')]: 59 })
  const refused = '400 this engine refuses'
  expect(await enable(['good1', 'bad', 'good2'])).toMatchObject({ done: 2, [refused]: 2 })
  const nested = await enable(numbers.map((n) => ['nest', 'nest/a', 'nest/a/b'][n % 3] ?? ''))
  expect(nested.done).toBe(1)
  expect(Object.keys(nested)).toHaveLength(2)
  // No path twice, so that no index refuses any of them.
  const group = ['deep', 'deep/a', 'deep/a/b'].map((path) => workers[0]?.enable({ path, type: 'transit' }))
  expect(await outcomes(group as Promise<void>[])).toEqual({ done: 1, [taken('deep')]: 2 })
  const listed = await Promise.all(workers.map((worker) => worker.list()))
  expect(listed[0]).toEqual(listed[1])
  expect(listed[0]).toHaveLength(30 + 1 + 2 + 1 + 1)
})

test('changes of one moment that share a path, or a mount, are made as if one came after the other', async () => {
  await using schema = await createMigrated()
  await using database = await open(schema.url)
  await database.start()
  await database.transaction((tx) => createMountSet(database, tx))
  const mounts = make(database)
  const listed = async () => (await mounts.list()).map(({ path, description }) => `${path} ${description}`)
  const enable = (path: string, description = '') => mounts.enable({ path, type: 'transit', description })
  const config = {}
  for (const path of ['a', 'b', 'c']) await enable(path)
  // The first one is alone; the others come while it is committed.
  const together = (work: readonly Promise<unknown>[]) => outcomes([enable(`first${Math.random()}`), ...work])
  const moved = await together([mounts.move('a', 'x'), enable('a', 'new'), mounts.move('x', 'y')])
  expect(moved).toEqual({ done: 4 })
  const again = await together([
    mounts.disable('b'),
    enable('b', 'new'),
    mounts.tune('b', { config, description: '1' }),
  ])
  expect(again).toEqual({ done: 4 })
  const tunes = Array.from({ length: 20 }, (_, n) => mounts.tune('c', { config, description: String(n) }))
  const absent = mounts.tune('none', { config })
  const missing = '400 tune of path "none/" failed: no mount entry found'
  expect(await together([...tunes, absent, enable('d'), mounts.disable('d')])).toEqual({ done: 23, [missing]: 1 })
  const left = (await listed()).filter((one) => !one.startsWith('first'))
  expect(left).toEqual(['a/ new', 'b/ 1', 'c/ 19', 'y/ '])
})

test('removing a mount that is not there waits as a removal does: another one may just have been made', async () => {
  await using schema = await createMigrated()
  await using database = await open(schema.url)
  await using sql = await createConnection({ uri: schema.url })
  // Without a cache the set is read: by a cached one the leaf is touched anyway.
  await database.transaction((tx) => createMountSet(database, tx))
  const mounts = make(database)
  const versions = async () => (await sql.query<RowDataPacket[]>('SELECT SUM(v) AS v FROM version_leaves'))[0][0]?.v
  await mounts.enable({ path: 'm', type: 'transit' })
  const before = await versions()
  await mounts.disable('none')
  expect(Number(await versions())).toBe(Number(before) + 1)
})

test('a new mount whose accessor is taken gets another one', async () => {
  await using schema = await createMigrated()
  await using database = await open(schema.url, { poolSize: 1 })
  await using sql = await createConnection({ uri: schema.url })
  await database.transaction((tx) => createMountSet(database, tx))
  const mounts = make(database)
  // The first accessor that the connection inserts is taken.
  await sql.query(`CREATE TRIGGER taken BEFORE INSERT ON mounts FOR EACH ROW BEGIN
    SET @taken = COALESCE(@taken, NEW.accessor);
    IF NEW.accessor = @taken THEN
      SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1062, MESSAGE_TEXT = 'Duplicate entry for key accessor';
    END IF;
  END`)
  await mounts.enable({ path: 'm', type: 'transit' })
  expect((await mounts.list()).map(({ path }) => path)).toEqual(['m/'])
})

const damages: Readonly<Record<string, string>> = {
  'an edited row': "UPDATE mounts SET description = 'x' WHERE path = 'm2/'",
  'a deleted row': "DELETE FROM mounts WHERE path = 'm2/'",
  'exchanged paths': [
    "UPDATE mounts SET path = 'x/' WHERE path = 'm1/'",
    "UPDATE mounts SET path = 'm1/' WHERE path = 'm2/'",
    "UPDATE mounts SET path = 'm2/' WHERE path = 'x/'",
  ].join(';'),
  'another revision': "UPDATE mounts SET rev = rev + 1 WHERE path = 'm2/'",
  'a missing head': "DELETE FROM heads WHERE `set` = 'mounts'",
}

test('a row that is not of the revision that its set lists is refused, though it is sealed', async () => {
  await using schema = await createMigrated()
  await using database = await open(schema.url)
  await database.transaction((tx) => createMountSet(database, tx))
  const mounts = make(database)
  await mounts.enable({ path: 'm', type: 'transit' })
  const table = database.table(mountsTable)
  const [older] = await database.snapshot((q) => table.list(q, {}, { by: 'path', limit: 1 }))
  await mounts.tune('m', { config: {} })
  // A database that answers the second question with the row of yesterday.
  const lying = { ...table, get: async () => older }
  const head = database.head('mounts')
  const known = new KnownSet({
    name: 'mounts',
    table: lying,
    head,
    keep: (row) => row,
    keyOf: ({ path }) => path,
    clock: systemClock,
  })
  await expect(database.snapshot((q) => known.read(q))).rejects.toThrow('the row is not the one that its set lists')
})

// Of few mounts a change reads all; of many, those that it does not know.
test.each([3, 60])(
  'a process that knows %d mounts serves and seals none of them once they are damaged',
  async (many) => {
    await using schema = await createMigrated()
    await using database = await open(schema.url)
    await using sql = await createConnection({ uri: schema.url, multipleStatements: true })
    await database.transaction((tx) => createMountSet(database, tx))
    const [mounts, rows] = [make(database), new MountRows({ database, clock: systemClock })]
    const paths = Array.from({ length: many }, (_, n) => `m${n}`)
    await Promise.all(paths.map((path) => mounts.enable({ path, type: 'transit' })))
    const listed = () => database.snapshot((q) => rows.list(q))
    const described = async () => (await listed()).find(({ path }) => path === 'm2/')
    const keep = 'CREATE TABLE kept AS SELECT * FROM mounts; CREATE TABLE kept_heads AS SELECT * FROM heads'
    const back = (table: string, kept: string) => `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM ${kept};`
    const restore = back('mounts', 'kept') + back('heads', 'kept_heads')
    await sql.query(keep)
    for (const [damage, statement] of Object.entries(damages)) {
      expect(await outcome(listed()), damage).toBe('done')
      await sql.query(statement)
      const work = [
        ...[listed, () => mounts.list(), () => mounts.enable({ path: 'new', type: 'transit' })],
        ...[() => mounts.tune('m0', { config: {} }), () => mounts.tune('m2', { config: {} })],
        ...[() => mounts.move('m2', 'moved'), () => mounts.disable('m0'), () => mounts.disable('m2')],
      ]
      for (const one of work) expect(await outcome(one()), `${damage} ${one}`).toMatch(/^DamagedRow: (mounts|heads)/)
      await sql.query(restore)
    }
    // After a restore another history leads to the same ids and revisions.
    await mounts.tune('m2', { config: {}, description: 'first' })
    expect(await described()).toMatchObject({ rev: 2, description: 'first' })
    await sql.query(restore)
    await using other = await open(schema.url)
    await make(other).tune('m2', { config: {}, description: 'second' })
    expect(await described()).toMatchObject({ rev: 2, description: 'second' })
    await mounts.tune('m2', { config: {} })
    expect(await described()).toMatchObject({ rev: 3, description: 'second' })
    const [row] = await listed()
    expect(() => Object.assign(row?.config ?? {}, { force_no_cache: true })).toThrow(TypeError)
  },
)
