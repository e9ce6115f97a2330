import { expect, test } from 'vitest'
import { migrations } from '../../../src/store/migrations/list.ts'
import { createDatabase } from '../../support/database.ts'
import { open } from '../support.ts'

/** For each version of the schema in turn, the oldest one that a program may know and still serve: as released. */
const oldest = [1, 1, 1, 1, 5, 5, 5, 5, 5, 5, 5, 5, 5, 14, 14, 16, 16, 16, 16, 16, 21, 22]

test('while a schema is brought up to date, programs are shut out only where they were when it was released', async () => {
  await using held = await createDatabase()
  const served: number[] = []
  for (let version = 1; version <= migrations.length; version++) {
    await using database = await open(held.url, { migrations: migrations.slice(0, version) })
    await database.migrate()
    served.push((await database.schemaStatus()).minReader)
  }
  expect(served.slice(0, oldest.length)).toEqual(oldest)
}, 60_000)
