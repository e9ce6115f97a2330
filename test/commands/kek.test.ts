import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'

const run = promisify(execFile)
const main = join(import.meta.dirname, '../../src/main.ts')
const plaintext = Buffer.from('kept').toString('base64')
let server: TestServer

beforeAll(async () => {
  server = await startServer({ workers: 2 })
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

async function strongroom(...words: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [main, ...words, '--config', server.configFile])
  return stdout
}

interface Kek {
  readonly id: string
  readonly purpose: string
  readonly state: string
  readonly keys: number
  /** Whether the token has it. */
  readonly here: boolean
}
const keks = async (): Promise<Kek[]> => JSON.parse(await strongroom('kek', 'status', '--json')).keks

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(1000)
}

describe('a cluster, then restored', { shuffle: false }, () => {
  test('a KEK is replaced while the node serves: old ciphertexts open before, during and after', async () => {
    const root = server.client()
    await root.post('transit/keys/kept')
    const { string } = await root.post('transit/encrypt/kept', { plaintext })
    const opens = async () =>
      (await root.post('transit/decrypt/kept', { ciphertext: string('data.ciphertext') })).string('data.plaintext')
    expect(await strongroom('kek', 'rotate', '--purpose', 'use')).toContain('announced: use KEK')
    await until(async () => {
      expect(await opens()).toBe(plaintext)
      const use = (await keks()).filter(({ purpose }) => purpose === 'use')
      return use.some(({ state, keys }) => state === 'retiring' && keys === 0)
    })
    const use = (await keks()).filter(({ purpose }) => purpose === 'use')
    expect(use.map(({ state }) => state).sort()).toEqual(['active', 'retiring'])
    // The key and its HMAC secret.
    expect(use.find(({ state }) => state === 'active')?.keys).toBe(2)
    await server.stop()
    await server.start()
    expect(await opens()).toBe(plaintext)
  }, 120_000)

  test('the KEKs that no components bring back are named, with what to do; those of custodians are told apart', async () => {
    const announced = await strongroom('kek', 'rotate', '--purpose', 'export', '--components')
    const id = /announced: export KEK (\S+)/.exec(announced)?.[1]
    const said = await strongroom('kek', 'status')
    expect(said.match(/ generated in a token, in this token, /g)).toHaveLength(5)
    expect(said.match(/ from components, .*$/gm)).toEqual([' from components, not in this token, 0 keys'])
    expect(said).toMatch(new RegExp(`^export  pending   ${id}  check value none yet, from components, `, 'm'))
    // The retired use KEK has no key left to lose, and the announced one has custodians.
    const [, names = ''] =
      /^These KEKs have no components: (.*)\. The keys under them are lost with the token\.$/m.exec(said) ?? ['']
    expect(names.split(', ').toSorted()).toEqual(['active export', 'active open', 'active system', 'active use'])
    expect(said).toContain('strongroom kek rotate --components')
  }, 120_000)

  test('a retired KEK is destroyed while keys are made, and the token has it no more', async () => {
    const retired = (await keks()).find(({ state }) => state === 'retiring')
    expect(retired?.here).toBe(true)
    const root = server.client()
    let [made, ended] = [0, false]
    const making = (async () => {
      for (; !ended; made++) {
        const { string } = await root.post(`transit/encrypt/made-${made}`, { plaintext })
        const opened = await root.post(`transit/decrypt/made-${made}`, { ciphertext: string('data.ciphertext') })
        expect(opened.string('data.plaintext')).toBe(plaintext)
        await delay(50)
      }
    })()
    const said = await strongroom('kek', 'destroy', retired?.id ?? '').finally(() => {
      ended = true
    })
    await making
    expect(said).toContain(`destroyed: ${retired?.id}\n`)
    expect(said).toMatch(/^database dumps are usable from \d{4}-\S+Z on, no earlier ones$/m)
    const { state, here, keys } = (await keks()).find(({ id }) => id === retired?.id) ?? {}
    expect({ state, here, keys }).toEqual({ state: 'destroyed', here: false, keys: 0 })
    await server.stop()
    await server.start()
    for (const name of ['kept', 'made-0', `made-${made - 1}`])
      expect((await root.post(`transit/encrypt/${name}`, { plaintext })).status).toBe(200)
  }, 180_000)

  test('a database older than the token remembers is refused, until an operator accepts it; then old tokens are void', async () => {
    const root = server.client()
    const connection = await createConnection(server.database.url)
    try {
      await connection.query('CREATE TABLE saved_policies AS SELECT * FROM policies')
      await connection.query('CREATE TABLE saved_heads AS SELECT * FROM heads')
      const policy = 'path "transit/*" { capabilities = ["deny"] }'
      expect((await root.post('sys/policies/acl/stop', { policy })).status).toBe(204)
      await server.stop()
      for (const table of ['policies', 'heads']) {
        await connection.query(`DELETE FROM ${table}`)
        await connection.query(`INSERT INTO ${table} SELECT * FROM saved_${table}`)
        await connection.query(`DROP TABLE saved_${table}`)
      }
    } finally {
      await connection.end()
    }
    await expect(server.start()).rejects.toThrow(/behind|gone back/)
    expect(await strongroom('accept-restore')).toContain('epoch 2')
    await server.start()
    expect((await root.get('transit/keys/kept')).status).toBe(403)
  }, 120_000)
})
