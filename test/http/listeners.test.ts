import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, expect, test } from 'vitest'
import { shareMemory } from '../../src/http/budget.ts'
import type { ListenerOptions } from '../../src/http/listeners.ts'
import { openListener } from './listener.ts'
import { type Serving, serve } from './serving.ts'
import { createCertificate, dial, hear, hearUntil, statuses } from './wire.ts'

const certificate = createCertificate()
const open: Serving[] = []
afterEach(() => Promise.all(open.splice(0).map(({ listener }) => listener.close(0))))
afterAll(() => certificate.remove())

async function start(options: Partial<ListenerOptions> = {}): Promise<Serving & { port: number }> {
  const serving = await serve(options)
  open.push(serving)
  return { ...serving, port: Number(serving.listener.address.split(':').at(-1)) }
}
const head = (method: string, path: string, extra: string) =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nX-Vault-Token: root\r\n${extra}\r\n`

test('a body within the limit is read, one beyond it is answered 413 and the client reads why', async () => {
  const { ask, port } = await start({ maxRequestBytes: 1000 })
  const body = (length: number) => `{"hash":"${'x'.repeat(length - 11)}"}`
  expect((await ask('POST', '/shelf/keys/a', { body: body(1000) })).status).toBe(200)
  const refused = '{"errors":["http: request body too large"]}\n'
  const declared = await dial(port)
  declared.write(head('POST', '/shelf/keys/b', 'Content-Length: 5000000\r\n'))
  // Sent all at once, and more than sockets hold: unless the server reads on, a reset destroys the answer.
  declared.write(Buffer.alloc(5_000_000))
  expect(await hear(declared)).toMatch(/^HTTP\/1.1 413 [\s\S]*\r\nConnection: close\r\n[\s\S]*too large"\]\}\n$/)
  const chunked = await dial(port)
  chunked.write(`${head('POST', '/shelf/keys/b', 'Transfer-Encoding: chunked\r\n')}400\r\n${'x'.repeat(1024)}\r\n`)
  expect(await hear(chunked)).toContain(refused)
  expect((await ask('GET', '/shelf/keys/b')).status).toBe(404)
})

test('who asks before sending too much is refused before sending, others are told to go on', async () => {
  const { port } = await start({ maxRequestBytes: 1000 })
  const much = await dial(port)
  much.write(head('POST', '/shelf/keys/a', 'Content-Length: 1001\r\nExpect: 100-continue\r\n'))
  const heard = await hear(much)
  expect(heard).not.toContain('100 Continue')
  expect(statuses(heard)).toEqual(['413'])
  const little = await dial(port)
  little.write(head('POST', '/shelf/keys/a', 'Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n'))
  await hearUntil(little, /100 Continue/)
  little.write('{}')
  expect(statuses(await hear(little))).toEqual(['200'])
})

test('32 MiB is read whole', async () => {
  const { ask } = await start()
  const body = Buffer.from(`{"size":1${' '.repeat(32 * 1024 * 1024 - 10)}}`)
  expect((await ask('POST', '/shelf/keys/a', { body })).status).toBe(200)
})

test('headers or a body that never end are answered 408', async () => {
  const { port } = await start()
  const [headers, body, silent] = await Promise.all([dial(port), dial(port), dial(port)])
  headers.write('POST /x HTTP/1.1\r\nHost')
  body.write(`${head('POST', '/shelf/keys/a', 'Content-Length: 10\r\n')}{`)
  expect((await Promise.all([headers, body, silent].map(hear))).map(statuses)).toEqual([['408'], ['408'], ['408']])
})

test('a client that goes away in the middle of its body changes nothing', async () => {
  const { ask, port, shelf } = await start()
  const client = await dial(port)
  client.write(`${head('POST', '/shelf/keys/a', 'Content-Length: 10\r\n')}{"size":`)
  await delay(20)
  client.destroy()
  await delay(20)
  expect(shelf.names.size).toBe(0)
  expect((await ask('GET', '/shelf/health')).status).toBe(429)
})

test('TLS: LIST works, Strict-Transport-Security is there, old versions are refused', async () => {
  const tls = { certificate: certificate.certPath, key: certificate.keyPath, minimumVersion: '1.3' as const }
  const { port, shelf, listener } = await start({ tls })
  shelf.names.add('a')
  expect(listener.address).toBe(`https://127.0.0.1:${port}`)
  const client = await dial(port, certificate)
  client.write(head('LIST', '/v1/shelf/keys', 'Connection: close\r\n'))
  const heard = await hear(client)
  expect(heard).toContain('"data":{"keys":["a"]}')
  expect(heard).toContain('Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n')
  const old = await import('node:tls').then(({ connect }) =>
    connect({ port, maxVersion: 'TLSv1.2', rejectUnauthorized: false }),
  )
  expect(await new Promise((resolve) => old.on('error', resolve).on('secureConnect', resolve))).toBeInstanceOf(Error)
})

test('a client certificate is asked for and reaches the pipeline; a client without one is served', async () => {
  const seen: (Uint8Array | undefined)[] = []
  const tls = { certificate: certificate.certPath, key: certificate.keyPath, clientCa: certificate.certPath }
  const { logged } = await start()
  const listener = await openListener(
    { address: '127.0.0.1:0', tls: { ...tls, minimumVersion: '1.2' }, maxRequestBytes: 1000 },
    {
      pipeline: {
        handle({ clientCertificate, remoteAddress }) {
          seen.push(clientCertificate)
          return { status: 200, headers: ['X-From', remoteAddress], body: '' }
        },
      },
      log: (await import('pino')).pino({ level: 'silent' }),
      limits: { headersSeconds: 2, requestSeconds: 2, idleSeconds: 5, leastBytesPerSecond: 2048, connections: 10 },
      budgets: shareMemory(1024),
    },
  )
  const port = Number(listener.address.split(':').at(-1))
  for (const mine of [certificate, undefined]) {
    const client = await dial(port, certificate, mine)
    client.write(head('GET', '/', '') + head('LIST', '/', 'Connection: close\r\n'))
    expect(await hear(client)).toContain('X-From: 127.0.0.1')
  }
  const der = Buffer.from(certificate.cert.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  expect(seen.map((one) => one && Buffer.from(one).equals(der))).toEqual([true, true, undefined, undefined])
  expect(logged).toEqual([])
  await listener.close(0)
})

test('a unix socket serves, and is gone after close', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-unix-'))
  const path = join(directory, 'api.sock')
  const { listener } = await start({ address: `unix:${path}` })
  expect(listener.address).toBe(`unix:${path}`)
  const client = connect(path)
  client.write(head('LIST', '/shelf/keys', 'Connection: close\r\n'))
  expect(statuses(await hear(client))).toEqual(['404'])
  await listener.close(100)
  expect(existsSync(path)).toBe(false)
  rmSync(directory, { recursive: true })
})

test('IPv6 addresses are written in brackets', async () => {
  const { listener } = await start({ address: '[::1]:0' })
  expect(listener.address).toMatch(/^http:\/\/\[::1\]:\d+$/)
})

test('an address that is taken is an error at start', async () => {
  const { port } = await start()
  await expect(start({ address: `127.0.0.1:${port}` })).rejects.toThrow('EADDRINUSE')
})

test('closing answers what has begun, ends its connection, and takes no more', async () => {
  const { listener, port } = await start()
  const [busy, sending, idle] = await Promise.all([dial(port), dial(port), dial(port)])
  idle.write(head('GET', '/shelf/health', ''))
  await hearUntil(idle, /\}\n$/)
  busy.write(head('GET', '/shelf/slow', ''))
  sending.write(`${head('POST', '/shelf/keys/a', 'Content-Length: 2\r\n')}{`)
  await delay(50)
  const [heardBusy, heardSending, heardIdle] = [hear(busy), hear(sending), hear(idle)]
  const closed = listener.close(5000)
  expect(await heardIdle).toBe('')
  await expect(dial(port)).rejects.toThrow('ECONNREFUSED')
  sending.write('}')
  for (const heard of [await heardBusy, await heardSending]) {
    expect(heard).toMatch(/^HTTP\/1.1 200 [\s\S]*\r\nConnection: close\r\n/)
  }
  await closed
})

test('closing cuts off at its deadline what does not end', async () => {
  const { listener, port } = await start()
  const client = await dial(port)
  client.write(`${head('POST', '/shelf/keys/a', 'Content-Length: 2\r\n')}{`)
  await delay(20)
  const heard = hear(client)
  await listener.close(50)
  expect(await heard).toBe('')
})
