import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type MariaDb, startMariaDb } from '../../scripts/embedded/mariadb.ts'
import { createShim, group, type Shim } from '../hsm/support/fault.ts'
import { runDirectory } from '../support/directory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { expectServed } from './nodes.ts'
import { openPinned } from './pinned.ts'
import { openSql, type Sql } from './sql.ts'

/** Wrong credentials cost an HMAC in memory: millions of them load neither the database nor the token. */

/** A million, if the environment asks for it, takes some two minutes for each test. */
const guesses = Number(process.env.STRONGROOM_TEST_GUESSES ?? 20_000)
const connections = 8
vi.setConfig({ testTimeout: 60_000 + guesses })

let shim: Shim
/** A server of its own, because its counters count all its users. */
let mariadb: MariaDb
let server: TestServer
let sql: Sql

beforeAll(async () => {
  shim = await createShim('/usr/lib/softhsm/libsofthsm2.so')
  const directory = join(mkdtempSync(join(runDirectory(), 'g-')), 'db')
  mariadb = await startMariaDb({ directory, schema: 'guess', durable: false })
  const { url } = mariadb
  const database = { url, urls: [url], async [Symbol.asyncDispose]() {} }
  server = await startServer({ library: shim.library, database })
  sql = await openSql(url)
  expectServed(await server.client().post('transit/keys/key'))
}, 60_000)
afterAll(async () => {
  await sql?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
  await mariadb?.[Symbol.asyncDispose]()
  shim?.[Symbol.dispose]()
})

/** Statements that the database has run since it was started. */
async function statements(): Promise<number> {
  const found = await sql.rows(
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Com_insert', 'Com_update', 'Com_begin')",
  )
  return found.reduce((sum, { Value }) => sum + Number(Value), 0)
}

/** What the guesses of one test cost together, and the seconds they took. */
interface Cost {
  readonly statements: number
  readonly calls: number
  readonly seconds: number
}

async function send(credential: () => string): Promise<Cost> {
  const began = performance.now()
  const before = await statements()
  shim.set({ groups: group.all, times: 0 })
  const paths = ['transit/encrypt/key', 'sys/mounts', 'auth/token/lookup-self', 'nothing/here']
  const senders = Array.from({ length: connections }, async () => {
    using pinned = openPinned(server.url, '')
    for (let sent = 0; sent < guesses / connections; sent++) {
      const { status } = await pinned.ask('POST', paths[sent % paths.length] ?? '', { plaintext: '' }, credential())
      expect(status).toBe(403)
    }
  })
  await Promise.all(senders)
  const { counted } = shim.read()
  shim.clear()
  const seconds = (performance.now() - began) / 1000
  return { statements: (await statements()) - before, calls: counted, seconds }
}

const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const random = (length: number): string => Array.from(randomBytes(length), (byte) => letters[byte % 62]).join('')
/** The form of our own credentials, with a tag that fits as often as one in 62^7. */
const ours = (): string => `hvs.${random(32)}`
/**
 * Polls and jobs go on all the time, some ten statements and less than one call of the token a second; for every guess
 * a look-up, or a call, would be far more.
 */
function expectLittle({ statements, calls, seconds }: Cost): void {
  expect(statements).toBeLessThan(15 * seconds + guesses / 100)
  expect(calls).toBeLessThan(seconds + guesses / 400)
}

describe('before and after an operator chooses a credential', { shuffle: false }, () => {
  test('guesses in the form of our credentials reach neither the database nor the token', async () => {
    const cost = await send(ours)
    expectLittle(cost)
  })

  test('guesses in any other form reach neither, until an operator has chosen a credential', async () => {
    const forms = [() => random(26), () => `s.${random(24)}`, () => `hvb.${random(100)}`, () => `hvs.${random(5)}`]
    let turn = 0
    const cost = await send(() => forms[turn++ % forms.length]?.() ?? '')
    expectLittle(cost)
  })

  test('afterwards those in our own form still reach neither', async () => {
    expectServed(await server.client().post('auth/token/create', { id: 'chosen', policies: ['default'] }))
    const cost = await send(ours)
    expectLittle(cost)
    // A guess of the other form does cost something: the counters work.
    shim.set({ groups: group.all, times: 0 })
    const before = await statements()
    expect((await server.client('guess').get('auth/token/lookup-self')).status).toBe(403)
    expect(shim.read().counted).toBeGreaterThan(0)
    expect(await statements()).toBeGreaterThan(before)
  })
})
