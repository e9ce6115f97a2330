import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { shareMemory } from '../../src/http/budget.ts'
import type { ListenerLimits, ListenerOptions } from '../../src/http/listeners.ts'
import { type Serving, serve } from './serving.ts'
import { createCertificate, dial, hear, statuses } from './wire.ts'

/** Clients that send or read too slowly do not hold resources for long. */

const open: Serving[] = []
const subscribed: (() => void)[] = []
afterEach(async () => {
  for (const end of subscribed.splice(0)) end()
  await Promise.all(open.splice(0).map(({ listener }) => listener.close(0)))
})

async function start(limits: Partial<ListenerLimits>, options: Partial<ListenerOptions> = {}) {
  const budgets = shareMemory(1024)
  const serving = await serve(options, budgets, { requestSeconds: 60, ...limits })
  open.push(serving)
  return { ...serving, budgets, port: Number(serving.listener.address.split(':').at(-1)) }
}

/** Counts what node:http tells of on one of its channels. */
function counting(channel: string): () => number {
  let count = 0
  const add = (): void => {
    count++
  }
  subscribe(channel, add)
  subscribed.push(() => unsubscribe(channel, add))
  return () => count
}

const get = (path: string) => `GET /shelf/${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const head = (length: number) =>
  `POST /shelf/keys/a HTTP/1.1\r\nHost: x\r\nX-Vault-Token: root\r\nContent-Length: ${length}\r\n\r\n`
const closed = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))
/** Writes again and again until the connection ends. */
function trickle(socket: Socket, text: string, milliseconds: number): void {
  const timer = setInterval(() => socket.write(text), milliseconds)
  socket.once('close', () => clearInterval(timer))
}

test('a body that trickles is refused with 408 and gives back what it holds; one that comes steadily is read', async () => {
  const { port, budgets } = await start({ idleSeconds: 1, leastBytesPerSecond: 5000 })
  const slow = await dial(port)
  slow.write(`${head(60_000)}{`)
  trickle(slow, ' '.repeat(100), 50)
  const heard = await hear(slow)
  expect(statuses(heard)).toEqual(['408'])
  expect(heard).toContain('limits.leastBytesPerSecond')
  expect(budgets.strangers.heldBytes).toBe(0)
  const steady = await dial(port)
  const answered = hear(steady)
  steady.write(`${head(30_002)}{}`)
  for (let piece = 0; piece < 30; piece++) {
    await delay(100)
    steady.write(' '.repeat(1000))
  }
  steady.end()
  expect(statuses(await answered)).toEqual(['200'])
})

test('a client that goes on for seconds, and reads nothing meanwhile, is told why its body was refused', async () => {
  const { port } = await start({})
  const client = await dial(port)
  client.pause()
  const heard = hear(client)
  client.write(head(2 ** 25).replace('root', 'guess'))
  for (let pieces = 0; pieces < 30; pieces++) {
    await delay(100)
    client.write(' '.repeat(10_000))
  }
  client.resume()
  expect(statuses(await heard)).toEqual(['413'])
})

test('a client that trickles an answer out is cut off, though it is never idle', async () => {
  const { port, budgets } = await start({ idleSeconds: 1, leastBytesPerSecond: 20_000_000 })
  const client = await dial(port)
  let read = 0
  // Far more in a second than one piece of an answer.
  client.on('data', (chunk: Buffer) => {
    read += chunk.length
    client.pause()
    setTimeout(() => client.resume(), (chunk.length / 3_000_000) * 1000)
  })
  client.write(get('open/60000000'))
  while (read === 0) await delay(10)
  while (budgets.answersToStrangers.heldBytes > 0) await delay(10)
  client.destroy()
  expect(read).toBeLessThan(40_000_000)
})

test.each(['plain', 'TLS'])(
  'over %s a client gets the whole of a long answer that takes fewer bytes, in as long as it may rest, than are written at once',
  async (kind) => {
    const certificate = createCertificate()
    // The system buffers little of a Unix socket, and as much for every client.
    const path = join(dirname(certificate.certPath), 'socket')
    const tls = { certificate: certificate.certPath, key: certificate.keyPath, minimumVersion: '1.3' as const }
    await start(
      { idleSeconds: 4, leastBytesPerSecond: 20_000 },
      { address: `unix:${path}`, ...(kind === 'TLS' ? { tls } : {}) },
    )
    const trusting = { path, ca: certificate.cert, checkServerIdentity: () => undefined }
    const client = kind === 'TLS' ? connectTls(trusting) : connect(path)
    let read = 0
    client.on('data', (chunk: Buffer) => {
      read += chunk.length
      client.pause()
      setTimeout(() => client.resume(), (chunk.length / 100_000) * 1000)
    })
    client.write('GET /shelf/open/1200000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    await closed(client)
    certificate.remove()
    expect(read).toBeGreaterThan(1_200_000)
  },
)

test.each([
  ['a short answer', 1, get('open/16000')],
  ['a short answer behind another', 4, get('slow/20') + get('open/16000').repeat(3)],
])('%s that is not read ends its connection, whatever the client sends meanwhile', async (_title, answers, asked) => {
  const { port } = await start({ idleSeconds: 1, headersSeconds: 60 })
  const finished = counting('http.server.response.finish')
  const client = await dial(port)
  client.pause()
  for (let sent = answers, done = 0; done === sent - answers; sent += answers) {
    client.write(asked)
    for (let tries = 0; finished() < sent && tries < 50; tries++) await delay(10)
    done = finished()
    if (sent > 5000) throw new Error('the connection holds more than it can')
  }
  const ended = closed(client)
  client.write('GET /shelf/health HTTP/1.1\r\nHost: x\r\n')
  trickle(client, 'A: b\r\n', 200)
  await ended
})

test('what follows too many pipelined requests is not even parsed, and ends with its connection', async () => {
  const { port, ask } = await start({ idleSeconds: 1 })
  const parsed = counting('http.server.request.start')
  const client = await dial(port)
  client.write(get('slow/3000') + get('health').repeat(65))
  for (let tries = 0; parsed() < 66 && tries < 500; tries++) await delay(10)
  const ended = closed(client)
  trickle(client, get('health').repeat(100), 20)
  client.resume()
  await ended
  expect(parsed()).toBe(66)
  expect((await ask('GET', '/shelf/health')).status).toBe(429)
})
