import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../supervisor/node.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { onSoftHsm } from '../support/token.ts'

/** A token whose directory is out of reach for a while: SoftHSM then shows it empty, and goes on so. */

let server: TestServer
beforeAll(async () => {
  server = await startServer({ workers: 2 })
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

const plaintext = Buffer.from('kept').toString('base64')
/** Enough to reach both workers. */
const connections = 8

test.runIf(onSoftHsm)(
  'is lost meanwhile, not the fault of callers, and served again when it is back',
  async () => {
    const root = server.client()
    const all = (ask: (index: number) => Promise<{ readonly status: number }>) =>
      Promise.all(Array.from({ length: connections }, async (_, index) => (await ask(index)).status))
    expect((await root.post('transit/keys/kept')).status).toBe(200)
    const { string } = await root.post('transit/encrypt/kept', { plaintext })
    const tokens = join(server.token.directory, 'tokens')
    renameSync(tokens, `${tokens}.away`)
    const seen = new Set<number>()
    try {
      await until('the loss is known', async () => {
        for (const status of await all((n) => root.post(`transit/keys/new-${n}`))) seen.add(status)
        return (await all(() => root.get('sys/health'))).every((status) => status === 503)
      })
    } finally {
      renameSync(`${tokens}.away`, tokens)
    }
    // Keys made ahead are stored as ever; no other answer blames the caller.
    expect([...seen].filter((status) => status !== 200 && status !== 503)).toEqual([])
    await until('service is back', async () =>
      (await all(() => root.get('sys/health'))).every((status) => status === 200),
    )
    for (const status of await all((n) => root.post(`transit/keys/later-${n}`))) expect(status).toBe(200)
    const opened = await root.post('transit/decrypt/kept', { ciphertext: string('data.ciphertext') })
    expect(opened.string('data.plaintext')).toBe(plaintext)
  },
  120_000,
)
