import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../support/client.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { stateTexts } from '../turns/support/statetexts.ts'
import { base64, clientWith, decrypt, encrypt, expectRefused, expectServed } from './nodes.ts'
import { openSql, type Sql } from './sql.ts'

/** Sends secrets through every entrance, then searches every place where bytes stay. All chosen here begin alike. */

const marker = `Canary${randomBytes(4).toString('hex')}`
const canary = (): string => `${marker}x${randomBytes(8).toString('hex')}`
/** A text that may be found: it shows that the search works. */
const control = `Control${randomBytes(4).toString('hex')}`
const password = canary()

let database: TestDatabase
let server: TestServer
let sql: Sql
let root: Client
/** Secrets that the server chose itself. */
const given: string[] = []

beforeAll(async () => {
  database = await createDatabase()
  sql = await openSql(database.url)
  const user = `u${randomBytes(4).toString('hex')}`
  await sql.rows(`CREATE USER '${user}'@'localhost' IDENTIFIED BY '${password}'`)
  await sql.rows(`GRANT ALL ON \`${new URL(database.url).pathname.slice(1)}\`.* TO '${user}'@'localhost'`)
  const { href: url } = Object.assign(new URL(database.url), { username: user, password })
  const named = { ...database, url, urls: [url] }
  server = await startServer({ rootToken: canary(), config: { log: { level: 'trace' } }, database: named })
  root = server.client()
  given.push(server.token.pin, server.token.soPin, server.unsealSecret)
}, 120_000)
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await sql?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
})

/**
 * The base64 digits of a text that are the same wherever it stands in a longer one, and its plain and hexadecimal
 * forms.
 */
function forms(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  const shifted = [0, 1, 2].flatMap((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const middle = encoded.slice(shift === 0 ? 0 : 4, bytes.length % 3 === 0 ? undefined : -2)
    return [middle, middle.replaceAll('+', '-').replaceAll('/', '_')]
  })
  return [...new Set([text, bytes.toString('hex'), bytes.toString('hex').toUpperCase(), ...shifted])].map((form) =>
    Buffer.from(form),
  )
}

/** No stored bytes may let a guess of a credential be checked, so plain digests of it are searched too. */
const digests = (text: string): Buffer[] =>
  ['sha256', 'sha1', 'md5'].flatMap((name) => {
    const digest = createHash(name).update(text).digest()
    return [digest, ...forms(digest.toString('latin1')).slice(1), Buffer.from(digest.toString('base64'))]
  })

const found = (where: Buffer, what: readonly Buffer[]): string[] =>
  what.filter((form) => where.includes(form)).map((form) => form.toString('latin1'))

test('the search finds a secret in any encoding', () => {
  for (const [before, after] of ['', 'a', 'bc', 'def'].flatMap((head) => ['', '1', '23'].map((tail) => [head, tail]))) {
    for (const encoding of ['utf8', 'hex', 'base64', 'base64url'] as const) {
      const text = Buffer.from(`${before}${marker}?>${after}`).toString(encoding)
      expect(found(Buffer.from(text), forms(marker)), text).not.toEqual([])
    }
  }
})

/** They are sent first, and looked for afterwards. */
describe('secrets', { shuffle: false }, () => {
  test('no answer repeats a secret that it was sent, no refusal either', async () => {
    const other = { 'X-Vault-Token': canary() }
    const replies = await Promise.all([
      root.post('transit/encrypt/key', { plaintext: `!${canary()}` }),
      root.post('transit/encrypt/key', { plaintext: { [canary()]: canary() } }),
      root.post('transit/encrypt/key', `{"plaintext": "${canary()}`),
      root.post('transit/encrypt/key', { batch_input: [{ plaintext: `!${canary()}` }] }),
      root.post('transit/encrypt/key', { batch_input: canary() }),
      root.post('transit/decrypt/key', { ciphertext: canary() }),
      root.post('transit/decrypt/key', { ciphertext: `vault:v1:${base64(canary())}` }),
      root.post('transit/hmac/nothing', { input: base64(canary()) }),
      root.post('transit/sign/key', { input: base64(canary()) }),
      root.post('transit/hash', { input: canary(), algorithm: 'none' }),
      root.post('sys/policies/acl/p', { policy: canary() }),
      root.call('POST', 'transit/encrypt/key', { plaintext: base64(canary()) }, other),
      root.call('POST', 'transit/encrypt/key', {}, { 'X-Vault-Token': `hvs.${canary()}` }),
      server.client('').call('GET', 'sys/mounts', undefined, { Authorization: `Bearer ${canary()}` }),
      root.post('auth/token/lookup', { token: canary() }),
      root.post('auth/token/create', { id: `hvs.${canary()}` }),
    ])
    // A node that is not sealed says so and looks at no key.
    const status = await root.post('sys/unseal', { key: canary() })
    expect(found(Buffer.from(expectServed(status).text), forms(marker))).toEqual([])
    for (const reply of replies) {
      expect(reply.status, reply.text).toBeGreaterThanOrEqual(400)
      expect(found(Buffer.from(reply.text), forms(marker)), reply.text).toEqual([])
    }
  })

  test('secrets go through every door that takes or gives one, and through faults of ours', async () => {
    const ciphertext = await encrypt(root, 'key', canary())
    expectServed(await decrypt(root, 'key', ciphertext))
    expectServed(await root.post('transit/rewrap/key', { ciphertext }))
    const batch = [{ plaintext: base64(canary()) }, { plaintext: base64(canary()) }]
    expectServed(await root.post('transit/encrypt/key', { batch_input: batch }))
    expectServed(await root.post('transit/hash', { input: base64(canary()) }))
    for (const type of ['aes128-gcm96', 'ecdsa-p256', 'rsa-2048', 'ed25519', 'hmac']) {
      expectServed(await root.post(`transit/keys/${type}`, { type }))
      const input = base64(canary())
      expectServed(await root.post(`transit/hmac/${type}`, { input }))
      if (/^(ecdsa|rsa|ed)/.test(type)) expectServed(await root.post(`transit/sign/${type}`, { input }))
    }
    const made = await root.post('auth/token/create', { policies: ['default'], meta: { note: control } })
    given.push(expectServed(made).string('auth.client_token'))
    expectServed(await root.post('auth/token/create', { id: canary(), policies: ['default'] }))
    const revoked = await clientWith(server, ['default'])
    given.push((await revoked.get('auth/token/lookup-self')).string('data.id'))
    expectServed(await revoked.post('auth/token/revoke-self'))
    expectServed(await root.post('sys/policies/acl/control', { policy: `# ${control}\npath "a" {}` }))

    await sql.rows("UPDATE materials m JOIN transit_keys k ON k.id = m.owner SET m.version = 9 WHERE k.name = 'key'")
    await sql.invalidate()
    expectRefused(await root.post('transit/encrypt/key', { plaintext: base64(canary()) }))
    expect(server.output()).toContain('a damaged row was refused')
  })

  test('none of them is in the logs at level trace, nor in the files of the node', () => {
    // init prints it that one time.
    const output = server.output().replace(/^unseal_secret: .*$/m, '')
    for (const text of [output, ...stateTexts(server.stateDirectory)]) {
      for (const what of [marker, ...given]) expect(found(Buffer.from(text), forms(what))).toEqual([])
    }
  })

  test('none of them is in any column of any table, nor anything that would confirm a guess', async () => {
    const guessable = [...given.filter((text) => text !== server.unsealSecret), server.rootToken].flatMap(digests)
    const what = [marker, ...given].flatMap(forms)
    const [searched, controls] = [[...what, ...guessable], forms(control)]
    let hits = 0
    for (const table of await sql.tables()) {
      for (const row of await sql.rows(`SELECT * FROM \`${table}\``)) {
        const cells = Buffer.concat(
          Object.values(row).map((value) => (Buffer.isBuffer(value) ? value : Buffer.from(`${value} `))),
        )
        expect(found(cells, searched), table).toEqual([])
        hits += found(cells, controls).length
      }
    }
    expect(hits).toBe(2)
  })

  test.skipIf(process.env.STRONGROOM_TEST_SOCKET === undefined)(
    'none of them is in the files of the database, its logs included',
    async () => {
      await sql.rows(`FLUSH TABLES ${(await sql.tables()).map((table) => `\`${table}\``).join(', ')} FOR EXPORT`)
      await sql.rows('UNLOCK TABLES')
      // Not in the run's own directory under `npm run mutants`, where runs share one database.
      const data = String((await sql.row('SELECT @@datadir AS place')).place)
      const schema = new URL(database.url).pathname.slice(1)
      const [what, controls] = [[marker, ...given].flatMap(forms), forms(control)]
      let hits = 0
      for (const path of [schema, '.'].flatMap((name) =>
        readdirSync(join(data, name)).map((file) => join(data, name, file)),
      )) {
        if (!/\/(ib\w+|[^/]+\.ibd|[^/]+\.log)$/.test(path)) continue
        const bytes = readFileSync(path)
        expect(found(bytes, what), path).toEqual([])
        hits += found(bytes, controls).length
      }
      expect(hits).toBeGreaterThan(1)
    },
  )
})
