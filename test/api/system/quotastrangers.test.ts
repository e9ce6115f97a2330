import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { done, fresh, useNode } from '../node.ts'

/** Every request of a caller without a token counts towards the quota of its address. */

const node = useNode()
const at = (name: string) => `sys/quotas/rate-limit/${name}`

type Ask = (mount: string) => Promise<number>
const raw = async (path: string, init: RequestInit = {}): Promise<number> =>
  (await fetch(`${node.server.url}/v1/${path}`, init)).status

/** Sends a request as it is written, and reads the status of the answer. */
function written(lines: readonly string[], body = ''): Promise<number> {
  const { hostname, port } = new URL(node.server.url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`))
    socket.once('data', (answer) => {
      resolve(Number(String(answer).split(' ')[1]))
      socket.destroy()
    })
    socket.once('error', reject)
  })
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
