import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { acknowledge } from '../../src/store/coherence/acks.ts'
import { isNodeLost, isPassing } from '../../src/store/faults.ts'
import { migrations } from '../../src/store/migrations/list.ts'
import { Connection } from '../../src/store/pool/connection.ts'
import { parseTargets } from '../../src/store/pool/target.ts'
import { type Bench, counters, createBench } from './support.ts'

/** Errors and reserved words of servers other than the one of these tests. A trigger raises the errors here. */

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

async function connect(): Promise<Connection> {
  const [target] = parseTargets(bench.url)
  if (!target) throw new Error('no target')
  return Connection.open(target, undefined, { connectMilliseconds: 10_000, statementMilliseconds: 10_000 })
}

describe.each([
  ['1461, no room for a prepared statement', 1461, false],
  ['3797, the wait for the group failed', 3797, false],
  ['3796, a member that is not ONLINE', 3796, true],
  ['3032, a server in offline mode, as members of MySQL 8.4 are that have left', 3032, true],
])('error %s', (_, number, avoided) => {
  const say = `CREATE TRIGGER says BEFORE INSERT ON usage_counters FOR EACH ROW
    SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = ${number}, MESSAGE_TEXT = 'said by the test'`
  beforeEach(async () => {
    await bench.sql('DROP TRIGGER IF EXISTS says')
    await bench.sql(say)
  })

  // By one node: another of the cluster may take no writes, and refuse by an error of its own.
  test('repeats the transaction, which succeeds once it is over', async () => {
    const database = await bench.another({ url: bench.url })
    const material = crypto.randomUUID()
    let runs = 0
    await database.transaction(async (tx) => {
      if (++runs === 3) await bench.sql('DROP TRIGGER says')
      await database.table(counters).insert(tx, { material, used: 1 })
    })
    expect(runs).toBe(3)
    expect(await database.read((q) => database.table(counters).find(q, { material }))).toMatchObject({ used: 1 })
  })

  test('is 503 and no fault of ours when it lasts', async () => {
    const database = await bench.another({ url: bench.url })
    const insert = database.transaction((tx) => database.table(counters).insert(tx, { material: 'x', used: 1 }))
    await expect(insert).rejects.toMatchObject({ status: 503, cause: { number } })
    await bench.sql('DROP TRIGGER says')
  }, 60_000)

  test(`has the node ${avoided ? 'avoided' : 'used on'}`, async () => {
    const connection = await connect()
    const sql = 'INSERT INTO usage_counters (material, used) VALUES (?, 1)'
    const error = await connection.run(sql, ['y']).catch((thrown: unknown) => thrown)
    expect([isPassing(error), isNodeLost(error)]).toEqual([true, avoided])
    connection.destroy()
    await bench.sql('DROP TRIGGER says')
  })
})

test('acknowledgements of several groups never go backwards, each by its own number', async () => {
  const connection = await connect()
  const registration = crypto.randomUUID()
  const acknowledged = async () =>
    (await bench.sql('SELECT bucket, v FROM acks WHERE registration = ? ORDER BY bucket', [registration])).map(
      ({ bucket, v }) => [bucket, Number(v)],
    )
  const large = 2 ** 52 + 1
  await acknowledge(connection, registration, [
    [7, 5],
    [3, 9],
  ])
  await acknowledge(connection, registration, [
    [3, 4],
    [7, large],
    [200, 1],
  ])
  expect(await acknowledged()).toEqual([
    [3, 9],
    [7, large],
    [200, 1],
  ])
  await connection.end()
})

test('no column is made under a word that a newer MySQL reserves, unless it is quoted', async () => {
  // Reserved in 9.7 and not in 8.0.33 (information_schema.KEYWORDS).
  const reserved = new Set(['external', 'library', 'qualify', 'tablesample'])
  const names: string[] = []
  const statement = async (sql: string): Promise<void> => {
    for (const [, name = ''] of sql.matchAll(/^\s*(?:ALTER TABLE \S+ ADD COLUMN )?([a-z_]+) [A-Z]/gm)) names.push(name)
  }
  for (const migration of migrations) await migration.run({ statement })
  expect(names.length).toBeGreaterThan(50)
  expect(names.filter((name) => reserved.has(name))).toEqual([])
})

test('no statement uses VALUES() of a column, which MySQL will drop', () => {
  const root = join(import.meta.dirname, '../../src')
  const files = globSync('**/*.ts', { cwd: root })
  expect(files.length).toBeGreaterThan(100)
  // A function of one name; the list of an INSERT has values, parameters or a template.
  expect(files.filter((file) => /\bVALUES\s*\(`?\w+`?\)/.test(readFileSync(join(root, file), 'utf8')))).toEqual([])
})
