import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { expect, test } from 'vitest'
import { startMariaDb } from '../../../scripts/embedded/mariadb.ts'
import { isMariaDb, requireSoundEngine } from '../../../src/store/pool/engine.ts'
import { runDirectory } from '../../support/directory.ts'
import { open } from '../support.ts'

/** Servers that speak MySQL's protocol but break its rules. MariaDB can be given the version string of one. */

test.each([
  ['8.0.11-TiDB-v7.5.1', 'TiDB'],
  ['5.7.25-TiDB-v6.5.0-serverless', 'TiDB'],
  ['8.0.30-Vitess', 'Vitess'],
])('%s is refused with the rule it breaks', (version, name) => {
  expect(() => requireSoundEngine(version)).toThrow(new RegExp(`^${name} is not supported: .*transaction`))
})

test.each([
  ['10.11.19-MariaDB-0+deb12u1-log', true],
  ['5.5.5-10.6.7-MariaDB', true],
  ['11.4.2-MariaDB', true],
  ['10.4.34-MariaDB', false],
  ['9.7.0', false],
  ['8.0.36-28.1', false],
  [undefined, false],
])('%s has the statements of MariaDB 10.5: %s', (version, has) => {
  expect(isMariaDb(version)).toBe(has)
})

test.each(['8.0.33', '8.4.6', '9.7.0', '10.11.19-MariaDB-0+deb12u1-log', '8.0.36-28.1', ''])(
  '%s is served',
  (version) => {
    expect(requireSoundEngine(version)).toBeUndefined()
  },
)

test('a server with such a version is refused when it is opened, at once and before anything is made in it', async () => {
  const directory = mkdtempSync(join(runDirectory(), 'engine-'))
  const args = ['--version=8.0.11-TiDB-v7.5.1']
  await using server = await startMariaDb({ directory, schema: 'other', durable: false, args })
  await expect(open(server.url)).rejects.toThrow(/^TiDB is not supported/)
  // Nor is a session of ours left there.
  await using owner = await createConnection(server.url)
  const sessions = async () => {
    const sql = 'SELECT id FROM information_schema.processlist WHERE db IS NOT NULL AND id <> CONNECTION_ID()'
    return (await owner.query<RowDataPacket[]>(sql))[0]
  }
  await expect.poll(sessions, { timeout: 10_000 }).toEqual([])
}, 60_000)
