import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { type Budgets, ByteBudget, shareMemory } from '../../src/http/budget.ts'
import type { ListenerOptions } from '../../src/http/listeners.ts'
import { type Serving, serve } from './serving.ts'
import { dial, hear, hearUntil, statuses } from './wire.ts'

const open: Serving[] = []
afterEach(() => Promise.all(open.splice(0).map(({ listener }) => listener.close(0))))

async function start(budgets: Budgets, options: Partial<ListenerOptions> = {}): Promise<Serving & { port: number }> {
  const serving = await serve(options, budgets)
  open.push(serving)
  return { ...serving, port: Number(serving.listener.address.split(':').at(-1)) }
}

const head = (token: string, length: number) =>
  `POST /shelf/keys/a HTTP/1.1\r\nHost: x\r\nX-Vault-Token: ${token}\r\nContent-Length: ${length}\r\n\r\n`
const until = async (holds: () => boolean) => {
  for (let tries = 0; !holds(); tries++) {
    if (tries === 1000) throw new Error('it never came to that')
    await delay(5)
  }
}
const retry = /\r\nRetry-After: 1\r\n/
const sum = ({ strangers, callers }: Budgets): number => strangers.heldBytes + callers.heldBytes

test('an address has half of a budget, all of them the whole; alone a body may be longer, and what is given back is free', () => {
  const budget = new ByteBudget(100)
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((address) => budget.claim(address))
  expect([a?.resize(40), b?.resize(50), b?.resize(51), c?.resize(11), c?.resize(10)]).toEqual([
    true,
    true,
    false,
    false,
    true,
  ])
  expect(budget.claim('a').resize(1)).toBe(false)
  for (const claim of [a, a, b]) claim?.release()
  expect(budget.heldBytes).toBe(10)
  expect(c?.resize(1000)).toBe(true)
  expect(d?.resize(1)).toBe(false)
  c?.release()
  expect([budget.heldBytes, d?.resize(1000), d?.resize(2000)]).toEqual([0, true, true])
})

test('unfinished bodies of strangers have a budget; beyond it 503, while callers and small bodies go on', async () => {
  const budgets = shareMemory(4)
  const { ask, port } = await start(budgets)
  const slow = await Promise.all([dial(port), dial(port)])
  for (const client of slow) client.write(head('guess', 30_000) + ' '.repeat(16_000))
  await until(() => budgets.strangers.heldBytes === 32_000)
  const third = await dial(port)
  third.write(head('guess', 30_000) + ' '.repeat(16_000))
  const heard = await hear(third)
  expect([statuses(heard), retry.test(heard)]).toEqual([['503'], true])
  expect((await ask('POST', '/shelf/keys/a', { token: 'guess', body: '{}' })).status).toBe(403)
  const caller = await dial(port)
  const answered = hear(caller)
  caller.write(head('root', 30_000) + ' '.repeat(16_000))
  await until(() => budgets.callers.heldBytes === 30_000)
  caller.end(' '.repeat(14_000))
  expect(statuses(await answered)).toEqual(['200'])
  for (const client of slow) client.destroy()
  await until(() => sum(budgets) === 0)
})

test('what a caller declares has its place before it is sent; a body that finds none is 503 before it is read', async () => {
  const budgets = { ...shareMemory(1024), callers: new ByteBudget(1_000_000) }
  const { port } = await start(budgets)
  const [first, second] = await Promise.all([dial(port), dial(port)])
  first.write(head('root', 300_000))
  await until(() => budgets.callers.heldBytes === 300_000)
  second.write(head('root', 300_000))
  const heard = await hear(second)
  expect([statuses(heard), retry.test(heard)]).toEqual([['503'], true])
  const answered = hearUntil(first, /HTTP\/1.1 200/)
  first.write(`{}${' '.repeat(299_998)}`)
  await answered
  expect(sum(budgets)).toBe(0)
  first.destroy()
})

test('more than 64 KiB needs a good token, declared or not, and is refused before it is sent', async () => {
  const budgets = shareMemory(1024)
  const { ask, port } = await start(budgets)
  for (const token of ['', 'guess']) {
    const client = await dial(port)
    client.write(head(token, 65_537))
    expect(await hear(client)).toMatch(/^HTTP\/1.1 413 [\s\S]*more than 65536 bytes are taken with a valid token only/)
    const long = { token, body: `{}${' '.repeat(100_000)}`, headers: { 'Transfer-Encoding': 'chunked' } }
    expect((await ask('POST', '/shelf/keys/a', long)).status).toBe(413)
    expect((await ask('POST', '/shelf/keys/a', { token, body: `{}${' '.repeat(65_534)}` })).status).toBe(403)
  }
  for (const token of ['root', 'limited']) {
    const body = `{}${' '.repeat(200_000)}`
    const status = token === 'root' ? 200 : 403
    expect((await ask('POST', '/shelf/keys/a', { token, body })).status).toBe(status)
    expect(
      (await ask('POST', '/shelf/keys/a', { token, body, headers: { 'Transfer-Encoding': 'chunked' } })).status,
    ).toBe(status)
  }
  expect(sum(budgets)).toBe(0)
})

test.each([
  ['whole', 0],
  ['in part', 30_000],
])('a connection serves on when bodies have come %s by the time their caller is known', async (_title, later) => {
  const { port } = await start(shareMemory(1024))
  const client = await dial(port)
  for (let requests = 0; requests < 3; requests++) {
    const answered = hearUntil(client, /HTTP\/1.1 200/)
    client.write(head('late', 100_000) + ' '.repeat(100_000 - later))
    await delay(100)
    client.write(' '.repeat(later))
    await answered
    const chunks = `${(100_000 - later).toString(16)}\r\n${' '.repeat(100_000 - later)}\r\n`
    const chunked = hearUntil(client, /HTTP\/1.1 200/)
    client.write(head('late', 0).replace('Content-Length: 0', 'Transfer-Encoding: chunked') + chunks)
    if (later === 0) client.write('0\r\n\r\n')
    await delay(100)
    if (later > 0) client.write(`${later.toString(16)}\r\n${' '.repeat(later)}\r\n0\r\n\r\n`)
    await chunked
  }
  client.destroy()
})

test('where a credential cannot be looked up a long body is 503, not too long', async () => {
  const { port } = await start(shareMemory(1024))
  const client = await dial(port)
  client.write(head('broken', 65_537))
  const heard = await hear(client)
  expect([statuses(heard), retry.test(heard)]).toEqual([['503'], true])
})

test('what a body holds is given back when it is answered, refused, or its client has gone', async () => {
  const budgets = shareMemory(1024)
  const { port } = await start(budgets, { maxRequestBytes: 300_000 })
  const send = async (token: string, length: number, sent: number) => {
    const client = await dial(port)
    client.write(head(token, length) + ' '.repeat(Math.min(sent, 50_000)))
    await delay(20)
    if (sent > 50_000) client.write(' '.repeat(sent - 50_000))
    return client
  }
  const held = await Promise.all([
    send('root', 300_000, 200_000),
    send('guess', 60_000, 55_000),
    send('root', 60_000, 59_999),
  ])
  await until(() => sum(budgets) === 300_000 + 55_000 + 59_999)
  expect([budgets.callers.heldBytes, budgets.strangers.heldBytes]).toEqual([300_000, 55_000 + 59_999])
  const [first, second, third] = held
  first?.destroy()
  second?.destroy()
  await until(() => sum(budgets) === 59_999)
  third?.write(' ')
  if (third) await hearUntil(third, /HTTP\/1.1 200/)
  expect(sum(budgets)).toBe(0)
})

test('answers that nobody reads have a budget; beyond it an answer is withheld and says so', async () => {
  const budgets = { ...shareMemory(1024), answers: new ByteBudget(26_000_000) }
  const { ask, port } = await start(budgets)
  const labels = { labels: { a: 'x'.repeat(12_000_000) } }
  const body = JSON.stringify(labels)
  const unread = await dial(port)
  unread.pause()
  unread.write(head('root', body.length) + body)
  await until(() => budgets.answers.heldBytes > 12_000_000)
  const refused = await ask('POST', '/shelf/keys/a', { body })
  expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1'])
  expect(refused.text).toContain('the answer is withheld')
  expect((await ask('GET', '/shelf/health')).status).toBe(429)
  unread.destroy()
  await until(() => budgets.answers.heldBytes === 0)
  expect((await ask('POST', '/shelf/keys/a', { body })).status).toBe(200)
})

test('answers that strangers do not read take no room from callers', async () => {
  const budgets = { ...shareMemory(1024), answersToStrangers: new ByteBudget(1_000_000) }
  const { ask, port } = await start(budgets)
  const unread = await Promise.all([1, 2, 3].map(() => dial(port)))
  for (const client of unread) {
    client.pause()
    client.write('GET /shelf/open/12000000 HTTP/1.1\r\nHost: x\r\n\r\n')
  }
  await until(() => budgets.answersToStrangers.heldBytes > 11_000_000)
  expect((await ask('GET', '/shelf/open/20000', { token: '' })).status).toBe(503)
  expect((await ask('GET', '/shelf/open/20000', { token: 'guess' })).status).toBe(503)
  expect((await ask('GET', '/shelf/open/20000')).status).toBe(200)
  const body = JSON.stringify({ labels: { a: 'x'.repeat(12_000_000) } })
  expect((await ask('POST', '/shelf/keys/a', { body })).status).toBe(200)
  await until(() => budgets.answers.heldBytes === 0)
  for (const client of unread) client.destroy()
  await until(() => budgets.answersToStrangers.heldBytes === 0)
})

test('64 requests may wait on a connection for an answer in front of them; the next is 503, and nothing behind it is served', async () => {
  const { port, shelf, ask } = await start(shareMemory(1024))
  const slow = 'GET /shelf/slow HTTP/1.1\r\nHost: x\r\n\r\n'
  const post = (name: string) =>
    `POST /shelf/keys/${name} HTTP/1.1\r\nHost: x\r\nX-Vault-Token: root\r\nContent-Length: 0\r\n\r\n`
  const names = Array.from({ length: 200 }, (_, index) => `n${index}`)
  const client = await dial(port)
  client.write(slow + names.map(post).join(''))
  const heard = statuses(await hear(client))
  expect(heard).toEqual(['200', ...Array(64).fill('200'), '503'])
  expect([...shelf.names].sort()).toEqual(names.slice(0, 64).sort())
  const flood = await dial(port)
  flood.pause()
  flood.write(slow + post('y').repeat(65))
  const closed = new Promise((resolve) => flood.once('close', resolve))
  const more = setInterval(() => flood.write(post('z').repeat(1000)), 50)
  await delay(500)
  flood.resume()
  await closed
  clearInterval(more)
  expect(shelf.names).not.toContain('z')
  const patient = await dial(port)
  let answers = 0
  patient.on('data', (chunk: Buffer) => {
    answers += statuses(chunk.toString('latin1')).length
  })
  for (let round = 1; round <= 3; round++) {
    patient.write(slow + post('x').repeat(64))
    await until(() => answers === 65 * round)
  }
  patient.destroy()
  expect((await ask('GET', '/shelf/health')).status).toBe(429)
})
