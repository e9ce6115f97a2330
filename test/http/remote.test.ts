import { mkdtempSync } from 'node:fs'
import { connect as connectPlain, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { parseConfig } from '../../src/config.ts'
import { shareMemory } from '../../src/http/budget.ts'
import type { ListenerOptions } from '../../src/http/listeners.ts'
import { createLog } from '../../src/log.ts'
import type { Pipeline } from '../../src/request/exchange.ts'
import { type Listener, openListener } from './listener.ts'
import { createCertificate, dial, hear, hearUntil } from './wire.ts'

/** Answers with the origin of a request. */
const pipeline: Pipeline = {
  handle: ({ method, remoteAddress, remotePort, body }) => ({
    status: 200,
    headers: [],
    body: `<${method} ${remoteAddress} ${remotePort} ${body}>`,
  }),
}
const limits = { headersSeconds: 1, requestSeconds: 10, idleSeconds: 10, leastBytesPerSecond: 2048, connections: 100 }
const certificate = createCertificate()
const open: Listener[] = []
afterEach(() => Promise.all(open.splice(0).map((listener) => listener.close(0))))
afterAll(() => certificate.remove())

async function start(options: Partial<ListenerOptions>): Promise<number> {
  const log = createLog('silent', {})
  const whole = { address: '127.0.0.1:0', maxRequestBytes: 1 << 20, ...options }
  const listener = await openListener(whole, { pipeline, log, limits, budgets: shareMemory(1024) })
  open.push(listener)
  return Number(listener.address.split(':').at(-1))
}
const get = (headers = '') => `GET /v1/x HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`

describe('X-Forwarded-For', () => {
  const rules = {
    addresses: ['10.0.0.0/8', '127.0.0.1'],
    hopSkips: 0,
    rejectNotPresent: true,
    rejectNotAuthorized: true,
  }
  const ask = async (forwardedFor: typeof rules, headers: string) => {
    const socket = await dial(await start({ forwardedFor }))
    socket.write(get(headers))
    const heard = await hear(socket)
    return /<GET (\S+) \d+ >/.exec(heard)?.[1] ?? `${heard.slice(9, 12)} ${/"errors":\["(.*?)"\]/.exec(heard)?.[1]}`
  }

  test.each([
    ['X-Forwarded-For: 192.0.2.7', 0, '192.0.2.7'],
    ['X-Forwarded-For: 203.0.113.9, 192.0.2.7', 0, '192.0.2.7'],
    ['X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 192.0.2.7', 0, '192.0.2.7'],
    ['x-forwarded-for: 203.0.113.9 ,192.0.2.7', 1, '203.0.113.9'],
    ['X-Forwarded-For: 192.0.2.7:4711', 0, '192.0.2.7'],
    ['X-Forwarded-For: 2001:db8::1', 0, '2001:db8::1'],
    ['X-Forwarded-For: [2001:db8::1]:443', 0, '2001:db8::1'],
  ])('%j with %i hops to skip comes from %s', async (header, hopSkips, address) => {
    expect(await ask({ ...rules, hopSkips }, `${header}\r\n`)).toBe(address)
  })

  test('is what the last proxy says, not what the client claims', async () => {
    expect(await ask(rules, 'X-Forwarded-For: 127.0.0.1, 198.51.100.1, 192.0.2.7\r\n')).toBe('192.0.2.7')
  })

  test.each([
    [{}, '', '400 missing x-forwarded-for header and configured to reject when not present'],
    [
      { addresses: ['10.0.0.0/8', '::1'] },
      'X-Forwarded-For: 192.0.2.7\r\n',
      '400 client address not authorized for x-forwarded-for and configured to reject connection',
    ],
    [
      { hopSkips: 2 },
      'X-Forwarded-For: a, b\r\n',
      '400 malformed x-forwarded-for configuration or request, hops to skip (2) would skip before earliest chain link (chain length 2)',
    ],
    [{}, 'X-Forwarded-For: someone\r\n', '400 x-forwarded-for must hold IP addresses'],
    [{}, 'X-Forwarded-For: \r\n', '400 x-forwarded-for must hold IP addresses'],
    [{ rejectNotPresent: false }, '', '127.0.0.1'],
    [{ rejectNotAuthorized: false, addresses: ['10.0.0.1'] }, 'X-Forwarded-For: 192.0.2.7\r\n', '127.0.0.1'],
  ])('under %j a request with %j is answered: %s', async (more, headers, answer) => {
    expect(await ask({ ...rules, ...more }, headers)).toBe(answer)
  })

  test('is nothing to a listener that is not told of proxies', async () => {
    const socket = await dial(await start({}))
    socket.write(get('X-Forwarded-For: 192.0.2.7\r\n'))
    expect(await hear(socket)).toContain('<GET 127.0.0.1 ')
  })
})

describe('PROXY protocol, version 2', () => {
  const proxyProtocol = { addresses: ['127.0.0.0/8'] }
  const header = (command: number, family: number, rest: string, length = rest.length / 2) =>
    Buffer.from(
      `0d0a0d0a000d0a515549540a${[command, family, length >> 8, length & 255].map(hex).join('')}${rest}`,
      'hex',
    )
  const hex = (byte: number) => byte.toString(16).padStart(2, '0')
  const four = 'c0000207 7f000001 1267 2008'.replaceAll(' ', '')
  const six = `20010db8${'0'.repeat(23)}1${'0'.repeat(31)}10000ffff`
  const begin = async (bytes: Uint8Array, options: Partial<ListenerOptions> = { proxyProtocol }): Promise<Socket> => {
    const socket = await dial(await start(options))
    socket.write(bytes)
    return socket
  }

  test.each([
    ['TCP over IPv4', header(0x21, 0x11, four), '192.0.2.7 4711'],
    ['TCP over IPv6', header(0x21, 0x21, six), '2001:db8::1 0'],
    ['with additions behind the addresses', header(0x21, 0x11, `${four}${'04000100'.repeat(50)}`), '192.0.2.7 4711'],
  ])('%s names the client of every request', async (_, bytes, client) => {
    const list = 'LIST /v1/x HTTP/1.1\r\nHost: x\r\n\r\n'
    const post = 'POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody'
    const socket = await begin(Buffer.concat([bytes, Buffer.from(list + post + get())]))
    const heard = await hear(socket)
    expect(heard.match(/<[^>]*>/g)).toEqual([`<LIST ${client} >`, `<POST ${client} body>`, `<GET ${client} >`])
  })

  test.each([1, 11, 12, 15, 16, 20, 28])('may come in two packets, cut at byte %i', async (cut) => {
    const bytes = Buffer.concat([header(0x21, 0x11, four), Buffer.from(get())])
    const socket = await begin(bytes.subarray(0, cut))
    await new Promise((resolve) => setTimeout(resolve, 30))
    socket.write(bytes.subarray(cut))
    expect(await hear(socket)).toContain('<GET 192.0.2.7 4711 >')
  })

  test.each([
    ["a check of the proxy's own", header(0x20, 0, '')],
    ['a client that the proxy does not know', header(0x21, 0, '')],
    ['a unix socket', header(0x21, 0x31, '00'.repeat(216))],
  ])('%s comes from the proxy', async (_, bytes) => {
    const socket = await begin(Buffer.concat([bytes, Buffer.from(get())]))
    expect(await hear(socket)).toContain('<GET 127.0.0.1 ')
  })

  test.each([
    ['no header', Buffer.from(get())],
    ['version 1', Buffer.from(`PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n${get()}`)],
    ['another version', Buffer.concat([header(0x31, 0x11, four), Buffer.from(get())])],
    ['another command', Buffer.concat([header(0x22, 0x11, four), Buffer.from(get())])],
    ['too few bytes for the addresses', Buffer.concat([header(0x21, 0x11, four.slice(2)), Buffer.from(get())])],
    ['too many bytes', Buffer.concat([header(0x21, 0x11, four, 5000), Buffer.alloc(5000)])],
    ['half a header and no more', header(0x21, 0x11, four).subarray(0, 20)],
  ])('a connection of a proxy with %s is cut without an answer', async (_, bytes) => {
    expect(await hear(await begin(bytes))).toBe('')
  })

  test('is no HTTP where it comes from elsewhere, and plain requests are served there', async () => {
    const elsewhere = { proxyProtocol: { addresses: ['10.0.0.0/8'] } }
    const told = await hear(await begin(Buffer.concat([header(0x21, 0x11, four), Buffer.from(get())]), elsewhere))
    expect(told).not.toContain('192.0.2.7')
    expect(told).toContain('400')
    expect(await hear(await begin(Buffer.from(get()), elsewhere))).toContain('<GET 127.0.0.1 ')
  })

  test('names the clients of a unix socket, each connection its own', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'strongroom-')), 'socket')
    await start({ address: `unix:${path}`, proxyProtocol: { addresses: ['unix'] } })
    const say = async (bytes: Uint8Array): Promise<string> => {
      const socket = connectPlain(path)
      const heard = hear(socket)
      socket.write(bytes)
      return heard
    }
    const heard = await Promise.all([
      say(Buffer.concat([header(0x21, 0x11, four), Buffer.from(get())])),
      say(Buffer.concat([header(0x21, 0x21, six), Buffer.from(get())])),
      say(Buffer.concat([header(0x20, 0, ''), Buffer.from(get())])),
      say(Buffer.from(get())),
    ])
    expect(heard.map((one) => one.match(/<[^>]*>/)?.[0])).toEqual([
      ...['<GET 192.0.2.7 4711 >', '<GET 2001:db8::1 0 >', '<GET  0 >'],
      undefined,
    ])
  })

  test('stands before TLS', async () => {
    const { certPath, keyPath } = certificate
    const tls = { certificate: certPath, key: keyPath, minimumVersion: '1.2' as const }
    const socket = await begin(header(0x21, 0x11, four), { proxyProtocol, tls })
    const secure = connect({ socket, ca: certificate.cert, servername: '', host: '127.0.0.1' })
    secure.write(get())
    expect(await hearUntil(secure, />/)).toContain('<GET 192.0.2.7 4711 >')
    secure.destroy()
  })
})

test.each([
  ['forwardedFor: {addresses: [10.0.0.0/33]}', '10.0.0.0/33 is not an IP address, CIDR block or "unix"'],
  ['proxyProtocol: {addresses: [proxy.example.org]}', 'proxy.example.org is not an IP address, CIDR block or "unix"'],
  [
    'proxyProtocol: {addresses: [unix]}, forwardedFor: {addresses: ["::1"]}',
    'forwardedFor and proxyProtocol both supply the address of the client; set only one of them',
  ],
  ['forwardedFor: {addresses: []}', 'addresses'],
])('the configuration refuses %s', (text, problem) => {
  const rest = 'database: {url: mysql://a@b/c}\npkcs11: {library: x, token: {label: x}, pin: {prompt: true}}'
  expect(() => parseConfig(`listeners: [{address: 'h:1', ${text}}]\n${rest}`, {})).toThrow(problem)
})
