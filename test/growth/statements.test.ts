import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fill, largeTables } from '../../scripts/bench/bulk.ts'
import { table as tokenTable } from '../../src/auth/methods/token.ts'
import { systemClock } from '../../src/clock.ts'
import { table as pkiTable } from '../../src/engines/pki/index.ts'
import { table as transitTable } from '../../src/engines/transit/index.ts'
import { table as systemTable } from '../../src/system/index.ts'
import { runDirectory } from '../support/directory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { createToken, type TestToken } from '../support/token.ts'
import { readCertificates } from './certificates.ts'
import { type Journal, openJournal, type Statement } from './journal.ts'
import { Teller, tellPki, tellSystem, tellTokens, tellTransit } from './story.ts'
import { tidyPages } from './tidy.ts'
import { type Prepared, prepare, readBacklog, startApp, until } from './world.ts'

/**
 * Rows of each large table: as many as two shared cores fill in half a minute; STRONGROOM_TEST_ROWS=1000000 takes
 * three. The number of rows that a statement reads does not depend on it.
 */
const bulkRows = Number(process.env.STRONGROOM_TEST_ROWS ?? 200_000)

/** Rows of the largest page. */
const bound = 1000

/** Statements that may read more. */
const exceptions: readonly { readonly statement: RegExp; readonly most: number; readonly reason: string }[] = [
  {
    statement: /^SELECT l\.leaf, .* FROM version_leaves l JOIN versions g/,
    most: 2 * (256 * 260 + 128 * 64),
    reason:
      'a poll reads the leaves of what has changed, the first one all that there ever are: 256 groups of 260, 128 of 64',
  },
  {
    statement: /^SELECT COUNT\(\*\) FROM `leases` WHERE `mount` = /,
    most: bulkRows + bound,
    reason: 'an operator who sets a lease-count quota has the leases of its mount counted, once',
  },
]

/** A scan of our own, which shows that the journal notices one. */
const scan = 'SELECT COUNT(*) FROM leases'

/** Statements that jobs must have run, or the test has not waited for them. */
const ofJobs = [
  /FROM `tokens` WHERE `expires_at` >= /,
  /FROM `leases` WHERE `due_at` >= /,
  /FROM `transit_keys` WHERE `rotate_at` >= /,
  /FROM `intents` WHERE `state` = /,
  /FROM `materials` WHERE `residence` = \? AND `state` = /,
  /FROM `materials` WHERE `kek` = \? AND \(`id` > /,
  /FROM `loose_mounts` ORDER BY /,
  /^DELETE FROM outcomes /,
  /FROM \(SELECT DISTINCT registration FROM acks\) /,
  /FROM `audit_heads` WHERE `updated_at` >= /,
  /FROM `remounts` WHERE `moved_at` >= /,
  /FROM `kek_proofs` WHERE `kek` = /,
  /FROM `pki_tidies` WHERE `site` = /,
]

let journal: Journal
let server: TestServer
let managed: TestToken
let told: Teller
let statements: readonly Statement[]

/** A node with a little of everything, stopped, and its database filled up. */
async function grow(): Promise<Prepared> {
  const config = { pkcs11Libraries: [{ name: 'same', library: managed.library }], audit: { directory: runDirectory() } }
  server = await startServer({ database: journal.database, config })
  const root = server.client()
  await root.post('sys/mounts/gone', { type: 'transit' })
  await root.post('gone/keys/a')
  await root.post('transit/keys/rotates', { auto_rotate_period: '1h' })
  await root.delete('sys/mounts/gone')
  await server.stop()
  const [mount] = await journal.sql("SELECT id FROM mounts WHERE path = 'transit/'")
  const prepared = await prepare(server)
  await fill(server.database.url, String(mount?.id), bulkRows)
  return prepared
}

/** Statements that jobs have not run yet. */
const unasked = async (): Promise<readonly RegExp[]> => {
  const texts = (await journal.statements()).map(({ text }) => text)
  return ofJobs.filter((statement) => !texts.some((text) => statement.test(text)))
}

beforeAll(async () => {
  journal = await openJournal()
  managed = await createToken('managed')
  const prepared = await grow()
  await journal.begin()
  await journal.sql(scan)
  await readBacklog(server.database.url)
  await readCertificates(server.database.url)
  await tidyPages(server.database.url)
  told = new Teller(server.client())
  await issue()
  await serve(prepared)
  statements = await journal.statements()
}, 600_000)
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await journal?.[Symbol.asyncDispose]()
})

/** A worker with the real time, since certificates are not signed while host and database disagree about it. */
async function issue(): Promise<void> {
  await using app = await startApp(server, systemClock)
  await tellPki(told)
  if (app.fatal.length > 0) throw new AggregateError(app.fatal)
}

/** A worker from its start to its end, with all other requests. */
async function serve(prepared: Prepared): Promise<void> {
  await using app = await startApp(server)
  await tellTransit(told)
  await tellTokens(told, server, (token) => new Teller(server.client(token)))
  await tellSystem(told, managed, prepared)
  await until(unasked)
  await told.tell('POST auth/token/tidy')
  await told.tell('POST sys/leases/tidy')
  await told.tell('POST sys/seal')
  await told.tell('POST sys/unseal', {}, { key: server.unsealSecret })
  if (app.fatal.length > 0) throw new AggregateError(app.fatal)
}

describe(`with ${bulkRows} keys, tokens, leases and certificates`, () => {
  test('every route was asked and has answered', () => {
    expect([...told.refusals, ...untold(told.told)]).toEqual([])
  })

  test('every statement of start, routes and jobs reads a page or a set', () => {
    expect(statements.find(({ text }) => text === scan)?.examined).toBeGreaterThanOrEqual(bulkRows)
    for (const table of largeTables)
      expect(
        statements.some(({ text }) => text.includes(`\`${table}\``)),
        table,
      ).toBe(true)
    expect(statements.filter((statement) => statement.text !== scan && tooMany(statement))).toEqual([])
  })

  test('every exception is one', () => {
    for (const { statement } of exceptions)
      expect(statements.some(({ text, examined }) => statement.test(text) && examined > bound)).toBe(true)
  })

  test('every row has been inserted behind the older ones: ids are UUIDv7', async () => {
    const tables = await journal.sql(
      "SELECT table_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = 'mac'",
    )
    expect(tables.length).toBeGreaterThan(15)
    // A manifest's id comes from its CRL issuer, so that two workers that create the first one conflict; there are few.
    for (const { name } of tables.filter((table) => table.name !== 'pki_manifests'))
      expect(await journal.sql(`SELECT id FROM ${name} WHERE SUBSTRING(id, 15, 1) <> '7' LIMIT 3`), name).toEqual([])
  })
})

const tooMany = ({ text, examined }: Statement): boolean =>
  examined > (exceptions.find(({ statement }) => statement.test(text))?.most ?? bound)

const untold = (told: ReadonlySet<string>): string[] =>
  Object.entries({ transit: transitTable, pki: pkiTable, 'auth/token': tokenTable, sys: systemTable })
    .flatMap(([prefix, table]) => Object.keys(table).map((route) => route.replace(' ', ` ${prefix}/`)))
    .filter((route) => !told.has(route))
