import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createShim, group } from '../hsm/support/fault.ts'
import { Line } from '../store/line.ts'
import { createDatabase } from '../support/database.ts'
import { startServer } from '../support/server.ts'
import { createToken } from '../support/token.ts'
import { strongroom } from './cli.ts'

const deviceRemoved = 0x32

/** A node that answers as it is told, until `work` is done with its address. */
async function answering(
  replies: Readonly<Record<string, readonly [status: number, body: object]>>,
  work: (address: string) => Promise<void>,
): Promise<void> {
  const server = createServer((request, response) => {
    const [status, body] = replies[request.url ?? ''] ?? [404, {}]
    response.writeHead(status).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  server.close()
}

const unsealed = [200, { sealed: false, version: '1.13.0' }] as const
const ready = [200, { hsm: 'ready', database: 'ready' }] as const

describe('status', () => {
  test.each([
    ['serves', unsealed, ready, 0, ''],
    ['is sealed', [200, { sealed: true }], [503, { hsm: 'closed', database: 'closed' }], 2, ''],
    [
      'has lost its token',
      unsealed,
      [503, { hsm: 'lost', database: 'ready' }],
      1,
      'its token is lost, its database ready',
    ],
    [
      'has a late database',
      unsealed,
      [503, { hsm: 'ready', database: 'late' }],
      1,
      'its token is ready, its database late',
    ],
    ['has no worker', [503, { errors: ['no worker of this node is healthy'] }], ready, 1, 'no worker of this node'],
    ['is another server', [200, { hello: 1 }], ready, 1, 'no status'],
  ] as const)('of a node that %s has its exit code', async (_, seal, health, code, words) => {
    await answering({ '/v1/sys/seal-status': seal, '/v1/sys/health': health }, async (address) => {
      const ran = await strongroom(['status'], { STRONGROOM_ADDRESS: address })
      expect(ran.code).toBe(code)
      expect(ran.stderr).toContain(words)
    })
  })

  test('asks where VAULT_ADDR says, unless our own variable or the option says otherwise', async () => {
    await answering({ '/v1/sys/seal-status': unsealed, '/v1/sys/health': ready }, async (VAULT_ADDR) => {
      expect(await strongroom(['status'], { VAULT_ADDR })).toMatchObject({ code: 0, stderr: '' })
      const nobody = 'http://localhost:1'
      expect(await strongroom(['status'], { VAULT_ADDR: nobody, STRONGROOM_ADDRESS: VAULT_ADDR })).toMatchObject({
        code: 0,
      })
      expect(await strongroom(['status', '--address', nobody], { VAULT_ADDR })).toMatchObject({ code: 1 })
    })
  })

  test('of a node that does not answer exits with 1', async () => {
    const { code, stderr } = await strongroom(['status', '--address', 'http://localhost:1'])
    expect(code).toBe(1)
    expect(stderr).toContain('ECONNREFUSED')
  })

  test('of an address that expects TLS says so', async () => {
    const server = createTlsServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { code, stderr } = await strongroom(['status', '--address', address])
    server.close()
    expect(code).toBe(1)
    expect(stderr).toContain(`${address} closed the connection without an answer: does it expect https?`)
  })

  test.each([
    [
      'comes a byte at a time',
      (response: ServerResponse) => setInterval(() => response.write(' '), 500),
      'does not answer',
    ],
    [
      'has no end',
      (response: ServerResponse) => setInterval(() => response.write(' '.repeat(1 << 18)), 1),
      'does not end',
    ],
    ['breaks off', (response: ServerResponse) => setTimeout(() => response.destroy(), 10), 'before its answer ended'],
  ])(
    'of an address whose answer %s ends',
    async (_, answer, words) => {
      const timers: NodeJS.Timeout[] = []
      const server = createServer((_request, response) => {
        response.writeHead(200, { 'Content-Length': 1e9 }).write('{')
        timers.push(answer(response))
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const { code, stderr } = await strongroom(['status', '--address', address])
      for (const timer of timers) clearInterval(timer)
      server.closeAllConnections()
      server.close()
      expect(code).toBe(1)
      expect(stderr).toContain(words)
    },
    60_000,
  )

  test('of a node that nobody asks anything notices that its database is away, and back, and its token gone', async () => {
    using shim = await createShim((await createToken('status')).library)
    await using database = await createDatabase()
    await using line = await Line.open(database.url)
    await using server = await startServer({ library: shim.library, database, config: { database: { url: line.url } } })
    const status = () => strongroom(['status', '--address', server.url])
    const until = async (wanted: number) => {
      const health = async () => (await fetch(`${server.url}/v1/sys/health`)).status
      while ((await health()) !== wanted) await delay(200)
    }
    expect((await status()).code).toBe(0)
    line.silent = true
    await until(503)
    const away = await status()
    expect(away.code).toBe(1)
    expect(away.stderr).toMatch(/its token is ready, its database (lost|late)/)
    line.silent = false
    await until(200)
    expect(await status()).toMatchObject({ code: 0, stderr: '' })
    shim.set({ groups: group.all & ~group.init, rv: deviceRemoved })
    for (let ran = await status(); ; ran = await status()) {
      if (ran.code === 0) continue
      expect(ran.code).toBe(1)
      expect(ran.stderr).toContain('its token is lost')
      return
    }
  }, 60_000)
})
