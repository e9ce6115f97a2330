import { mkdtempSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { Database } from '../../src/store/database.ts'
import { quiet } from '../store/support.ts'
import { createDatabase } from '../support/database.ts'
import { runDirectory } from '../support/directory.ts'
import { copyCluster } from '../support/template/cluster.ts'
import { createMigrated } from '../support/template/migrated.ts'
import { oncePerRun } from '../support/template/once.ts'
import { createToken } from '../support/token.ts'

/** Every table's definition and rows; of `outcomes` and `job_leases`, which say who migrated when, no rows. */
async function contentsOf(url: string): Promise<Record<string, unknown>> {
  await using connection = await createConnection(url)
  const query = async (sql: string, values: string[] = []) => (await connection.query<RowDataPacket[]>(sql, values))[0]
  const contents: Record<string, unknown> = {}
  for (const row of await query('SHOW TABLES')) {
    const table: string = Object.values(row)[0]
    const rows = ['outcomes', 'job_leases'].includes(table) ? [] : await query('SELECT * FROM ??', [table])
    contents[table] = [await query('SHOW CREATE TABLE ??', [table]), rows]
  }
  return contents
}

test('a copied schema is what the migrations make', async () => {
  await using copy = await createMigrated()
  await using made = await createDatabase()
  await using database = await Database.open({ url: made.url, poolSize: 1, log: quiet, clock: systemClock })
  await database.migrate()
  const contents = await contentsOf(copy.url)
  expect(Object.keys(contents).length).toBeGreaterThan(40)
  expect(contents).toEqual(await contentsOf(made.url))
  const connection = await createConnection(made.url)
  const [others] = await connection.query(
    `SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() UNION
     SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE()`,
  )
  await connection.end()
  expect(others).toEqual([])
})

test('a process gets one copy of the cluster, with a token among its own', async () => {
  const state = mkdtempSync(join(runDirectory(), 'state-'))
  const other = await createToken()
  const copy = await copyCluster(state)
  if (copy === undefined) throw new Error('no copy')
  await using database = copy.database
  expect(copy.token.directory).toBe(other.directory)
  expect(readdirSync(join(other.directory, 'tokens'))).toHaveLength(2)
  expect(readdirSync(state)).toEqual([expect.stringMatching(/^self-test-/)])
  expect(await contentsOf(database.url)).toMatchObject({ cluster: [expect.anything(), [{ state: 'ready' }]] })
  expect(await copyCluster(state)).toBeUndefined()
})

test('what a run shares is made once, though many ask, and by the next one when the first fails', async () => {
  let made = 0
  const make = async () => {
    made++
    if (made === 1) throw new Error('the first fails')
    return { made }
  }
  const asked = await Promise.allSettled([1, 2, 3].map(() => oncePerRun('shared-for-a-test', make)))
  expect(asked.map(({ status }) => status).sort()).toEqual(['fulfilled', 'fulfilled', 'rejected'])
  expect(await oncePerRun('shared-for-a-test', make)).toEqual({ made: 2 })
  expect(made).toBe(2)
})
