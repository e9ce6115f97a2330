import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { enable, type TestDevice } from '../../audit/device.ts'
import { done, fresh, useNode } from '../node.ts'

/** Every request of a caller without a token counts towards the quota of its address, which a proxy may report. */

const proxy = '127.0.0.9'
const listeners = [
  { address: '127.0.0.1:0' },
  {
    address: '127.0.0.2:0',
    forwardedFor: { addresses: [proxy], rejectNotPresent: false, rejectNotAuthorized: false },
  },
  { address: '127.0.0.3:0', proxyProtocol: { addresses: [proxy] } },
]
const node = useNode({ config: { listeners } })
const at = (name: string) => `sys/quotas/rate-limit/${name}`

type Ask = (mount: string) => Promise<number>
const raw = async (path: string, init: RequestInit = {}): Promise<number> =>
  (await fetch(`${node.server.url}/v1/${path}`, init)).status

type Listener = 'plain' | 'forwarded' | 'proxied'

function dial(listener: Listener, localAddress: string): Socket {
  const urls = /^ready (.*)$/m.exec(node.server.output())?.[1]?.split(' ') ?? []
  const { hostname: host, port } = new URL(urls[['plain', 'forwarded', 'proxied'].indexOf(listener)] ?? '')
  return connect({ port: Number(port), host, localAddress })
}

const statusOn = (socket: Socket): Promise<number> =>
  new Promise((resolve, reject) => {
    socket.once('data', (answer) => {
      resolve(Number(String(answer).split(' ')[1]))
      socket.destroy()
    })
    socket.once('error', reject)
  })

/** Sends a request as it is written, and reads the status of the answer. */
function written(lines: readonly string[], { listener = 'plain', from = '127.0.0.1', before = '' }: Way = {}) {
  const socket = dial(listener, from)
  socket.write(Buffer.concat([Buffer.from(before, 'hex'), Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)]))
  return statusOn(socket)
}

interface Way {
  readonly listener?: Listener
  /** An address of the loopback. */
  readonly from?: string
  /** Hexadecimal bytes before the request. */
  readonly before?: string
}

const guess = { headers: { 'X-Vault-Token': 'hvs.guess' } }
const asks: readonly (readonly [title: string, ask: Ask, answer: number])[] = [
  ['without a token', (mount) => raw(`${mount}/keys/a`), 403],
  ['with a guessed token', (mount) => raw(`${mount}/keys/a`, guess), 403],
  ['for a path that no route has', (mount) => raw(`${mount}/no/such/path`), 403],
  ['for a path that cannot be read', (mount) => raw(`${mount}/keys/%ff`), 400],
  ['with a body that is no JSON', (mount) => raw(`${mount}/keys/a`, { ...guess, method: 'POST', body: '{' }), 400],
  ['by a method that nothing has', (mount) => raw(`${mount}/keys/a`, { ...guess, method: 'OPTIONS' }), 400],
  [
    'with a header that is not supported',
    (mount) => raw(`${mount}/keys/a`, { headers: { ...guess.headers, 'X-Vault-Wrap-TTL': '1h' } }),
    400,
  ],
  [
    'with a body longer than strangers may send',
    (mount) => raw(`${mount}/keys/a`, { ...guess, method: 'POST', body: `"${'x'.repeat(100_000)}"` }),
    413,
  ],
  [
    'with a body longer than anybody may send',
    (mount) => written([`POST /v1/${mount}/keys/a HTTP/1.1`, 'Host: x', 'Content-Length: 999999999999']),
    413,
  ],
  ['with two Host headers', (mount) => written([`GET /v1/${mount}/keys/a HTTP/1.1`, 'Host: x', 'Host: y']), 400],
]

for (const grouping of ['ip', 'token', 'none']) {
  test.each(asks)(`a request %s counts towards a quota by ${grouping}`, async (_, ask, answer) => {
    const mount = await node.mount()
    await done(node.root.post(at(fresh('q')), { rate: 2, interval: '10m', path: mount, group_by: grouping }))
    expect([await ask(mount), await ask(mount), await ask(mount)]).toEqual([answer, answer, 429])
  })
}

test('an unknown mount counts towards a quota of all requests, and so do sys/quotas for who has no good token', async () => {
  const name = fresh('q')
  for (const ask of [
    () => raw('nowhere/at/all'),
    () => raw('nowhere/at/all', guess),
    () => raw('sys/quotas/config'),
    () => raw(at(name), { ...guess, method: 'DELETE' }),
    () => raw('', {}),
  ]) {
    await done(node.root.post(at(name), { rate: 2, interval: '10m' }))
    const first = await ask()
    expect([first, await ask(), await ask()]).toEqual([first, first, 429])
    expect(first).not.toBe(429)
    expect(await raw('sys/health')).toBe(200)
    // A caller with a token may remove the quota.
    await done(node.root.get(at(name)))
    await done(node.root.delete(at(name)))
  }
})

test('a browser that is refused for its origin counts', async () => {
  await done(node.root.post('sys/config/cors', { allowed_origins: 'https://console.example' }))
  const [mount, other] = [await node.mount(), await node.mount()]
  for (const path of [mount, other]) await done(node.root.post(at(fresh('q')), { rate: 2, interval: '10m', path }))
  const foreign = () => raw(`${mount}/keys/a`, { headers: { Origin: 'https://elsewhere.example' } })
  expect([await foreign(), await foreign(), await foreign()]).toEqual([403, 403, 429])
  const headers = { Origin: 'https://console.example', 'Access-Control-Request-Method': 'POST' }
  const preflight = () => raw(`${other}/keys/a`, { method: 'OPTIONS', headers })
  expect([await preflight(), await preflight(), await preflight()]).toEqual([200, 200, 429])
  await done(node.root.delete('sys/config/cors'))
})

/** A header of PROXY protocol, version 2, that names the client 192.0.2.7 and its port 4711. */
const proxyHeader = '0d0a0d0a000d0a515549540a2111000cc00002077f00000112672008'

describe('the address of a client', () => {
  const forwarded = 'X-Forwarded-For: 192.0.2.7'
  let device: TestDevice
  beforeAll(async () => {
    device = await enable(node.root)
  })
  afterAll(() => device.disable())

  test.each<[string, readonly string[], Way, number, string | undefined]>([
    ['what a proxy says in X-Forwarded-For', [forwarded], { listener: 'forwarded', from: proxy }, 403, '192.0.2.7'],
    ['its own where anybody else says so', [forwarded], { listener: 'forwarded' }, 403, '127.0.0.1'],
    ['its own where no proxy is configured', [forwarded], { from: proxy }, 403, proxy],
    ['in the PROXY header of a proxy', [], { listener: 'proxied', from: proxy, before: proxyHeader }, 403, '192.0.2.7'],
    ['its own without such a header from elsewhere', [], { listener: 'proxied' }, 403, '127.0.0.1'],
    ['in no PROXY header of anybody else', [], { listener: 'proxied', before: proxyHeader }, 400, undefined],
  ])('is %s, and both audit lines show it', async (_, headers, way, status, shown) => {
    const path = `transit/keys/${fresh('k')}`
    const head = [`GET /v1/${path} HTTP/1.1`, 'Host: x', 'X-Vault-Token: hvs.guess', ...headers]
    expect(await written(head, way)).toBe(status)
    const addresses = device.of(path).map(({ request }) => request.remote_address)
    expect(addresses).toEqual(shown === undefined ? [] : [shown, shown])
  })

  test('is the one that a quota by address counts: another one has a count of its own', async () => {
    const mount = await node.mount()
    await done(node.root.post(at(fresh('q')), { rate: 2, interval: '10m', path: mount }))
    const head = [`GET /v1/${mount}/keys/a HTTP/1.1`, 'Host: x']
    const ways: [readonly string[], Way][] = [
      [[], {}],
      [[], { from: proxy }],
      [['X-Forwarded-For: 192.0.2.7'], { listener: 'forwarded', from: proxy }],
      [['X-Forwarded-For: 192.0.2.8'], { listener: 'forwarded', from: proxy }],
    ]
    const statuses = []
    for (const [headers, way] of ways)
      for (let count = 0; count < 3; count++) statuses.push(await written([...head, ...headers], way))
    expect(statuses).toEqual(ways.flatMap(() => [403, 403, 429]))
    // The same client by another way.
    expect(await written(head, { listener: 'proxied', from: proxy, before: proxyHeader })).toBe(429)
  })

  test('is the one whose unfinished bodies count: beyond its half 503, and another one is served', async () => {
    const dialled: Socket[] = []
    const begin = (client: string): Socket => {
      const socket = dial('forwarded', proxy)
      const head = `POST /v1/transit/keys/a HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${client}\r\nContent-Length: 65000`
      socket.write(`${head}\r\n\r\n{${' '.repeat(63_998)}`)
      dialled.push(socket)
      return socket
    }
    const answer = async (client: string): Promise<number> => {
      const socket = begin(client)
      const status = statusOn(socket)
      await delay(100)
      if (!socket.destroyed) socket.write(`${' '.repeat(1000)}}`)
      return status
    }
    // Half of 16 MiB.
    for (let count = 0; count < 131; count++) begin('192.0.2.7')
    await expect.poll(() => answer('192.0.2.7'), { timeout: 30_000 }).toBe(503)
    expect(await answer('192.0.2.8')).toBe(403)
    for (const socket of dialled) socket.destroy()
    await expect.poll(() => answer('192.0.2.7'), { timeout: 30_000 }).toBe(403)
  })
})
