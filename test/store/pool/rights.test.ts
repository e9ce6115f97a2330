import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../../src/store/database.ts'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { inGroup, membersTable } from '../../support/engine.ts'
import { type Bench, createBench, open, policies, policy, randomName } from '../support.ts'

/** The rights that docs/databases.md names are enough. */

const stack = new AsyncDisposableStack()
let bench: Bench
let empty: TestDatabase
beforeAll(async () => {
  bench = stack.use(await createBench())
  empty = stack.use(await createDatabase())
})
afterAll(() => stack.disposeAsync())

/** The database at `url` through a new account, which has these rights on its schema. */
async function through(url: string, rights: string): Promise<Database> {
  const user = randomName()
  const schema = new URL(url).pathname.slice(1)
  for (const host of ['localhost', '127.0.0.1']) {
    await bench.sql(`CREATE USER '${user}'@'${host}' IDENTIFIED BY 'secret'`)
    await bench.sql(`GRANT ${rights} ON ${schema}.* TO '${user}'@'${host}'`)
    if (inGroup) await bench.sql(`GRANT SELECT ON ${membersTable} TO '${user}'@'${host}'`)
  }
  return stack.use(await open(Object.assign(new URL(url), { username: user, password: 'secret' }).href))
}

const daily = 'SELECT, INSERT, UPDATE, DELETE'

async function used(database: Database): Promise<void> {
  const table = database.table(policies)
  await database.start()
  const row = await database.transaction((tx) => table.insert(tx, policy(randomName())))
  await database.transaction(async (tx) => {
    const found = await table.lock(tx, { id: row.id })
    if (found) await table.remove(tx, found)
  })
  expect(await database.snapshot((q) => table.get(q, row.id))).toBeUndefined()
}

test('to read and to change rows are enough to serve', async () => {
  await used(await through(bench.url, daily))
}, 60_000)

test('they are enough to migrate a schema that needs nothing', async () => {
  await (await through(bench.url, daily)).migrate()
})

test('to make and alter tables besides are enough to migrate', async () => {
  const database = await through(empty.url, `${daily}, CREATE, ALTER, INDEX`)
  await database.migrate()
  await used(database)
}, 120_000)
