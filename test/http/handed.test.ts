import { createServer, type Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, expect, test } from 'vitest'
import { shareMemory } from '../../src/http/budget.ts'
import { createListener, type ListenerOptions } from '../../src/http/listeners.ts'
import { createCertificate, dial, hear, hearUntil, statuses } from './wire.ts'

const acceptors: Server[] = []
afterEach(() => {
  for (const acceptor of acceptors.splice(0)) acceptor.close()
})

/** A listener that is given its connections. */
async function start(options: Partial<ListenerOptions> = {}) {
  const serving = await createListener(
    { address: '127.0.0.1:1', maxRequestBytes: 1000, ...options },
    {
      pipeline: {
        handle: async ({ rawPath: path }) => {
          if (path === '/slow') await delay(100)
          return { status: 200, headers: [], body: `asked for ${path}\n` }
        },
      },
      log: pino({ level: 'silent' }),
      limits: { headersSeconds: 1, requestSeconds: 1, idleSeconds: 5, connections: 2, leastBytesPerSecond: 1 },
      budgets: shareMemory(1024),
    },
  )
  const acceptor = createServer((socket) => serving.accept(socket))
  acceptors.push(acceptor)
  await new Promise<void>((resolve) => acceptor.listen(0, '127.0.0.1', resolve))
  return { serving, port: (acceptor.address() as { port: number }).port }
}
const get = (path: string, extra = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${extra}\r\n`

test('a connection that is given is served', async () => {
  const { port } = await start()
  const client = await dial(port)
  client.write(get('/') + get('/slow', 'Connection: close\r\n'))
  expect(await hear(client)).toMatch(/^HTTP\/1.1 200 [\s\S]*asked for \/slow\n$/)
})

test('headers that never end are answered 408, and a connection beyond the limit is closed', async () => {
  const { port } = await start()
  const [first, second] = [await dial(port), await dial(port)]
  first.write('GET /')
  second.write(get('/'))
  await hearUntil(second, /asked for/)
  expect(await hear(await dial(port))).toBe('')
  expect(statuses(await hear(first))).toEqual(['408'])
})

test('TLS is spoken on a connection that is given', async () => {
  const certificate = createCertificate()
  const tls = { certificate: certificate.certPath, key: certificate.keyPath, minimumVersion: '1.3' as const }
  const { port } = await start({ tls })
  const client = await dial(port, certificate)
  client.write(get('/', 'Connection: close\r\n'))
  expect(await hear(client)).toContain('asked for /')
  certificate.remove()
})

test('closing, an idle connection may bring one more request, whose answer ends it', async () => {
  const { serving, port } = await start()
  const [busy, idle] = [await dial(port), await dial(port)]
  for (const one of [busy, idle]) {
    one.write(get('/'))
    await hearUntil(one, /asked for \/\n$/)
  }
  const closed = serving.close(60_000, 1000)
  busy.write(get('/late'))
  expect(await hear(busy)).toMatch(/\r\nConnection: close\r\n[\s\S]*asked for \/late\n$/)
  expect(await hear(idle)).toBe('')
  await closed
})
