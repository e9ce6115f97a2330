import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { done, fresh, hello, useNode } from '../api/node.ts'
import type { Reply } from '../support/client.ts'
import { enable, hidden, type TestDevice } from './device.ts'

const node = useNode()
const hashed = expect.stringMatching(hidden)
const strings = (count: number) => JSON.stringify({ deep: [Array(count).fill('x')] })

/** Digest and length of bytes as a line shows them. */
const content = async (device: TestDevice, bytes: string) => ({
  content_sha256: await device.hash(createHash('sha256').update(bytes).digest('hex')),
  content_length: Buffer.byteLength(bytes),
})

/** A name that is shown as an HMAC: it looks like a credential. */
const nameOf = (number: number) => `hvs.${10_000_000 + number}`

/** Sends a request and returns how much the file grew by. */
async function growth(device: TestDevice, ask: () => Promise<Reply>): Promise<{ reply: Reply; bytes: number }> {
  const before = statSync(device.file).size
  const reply = await ask()
  return { reply, bytes: statSync(device.file).size - before }
}

test('a stranger’s fields are on record one by one while they are few, else by digest and length of the body', async () => {
  const device = await enable(node.root)
  const path = `transit/encrypt/${fresh('none')}`
  const stranger = node.server.client('guess')
  expect((await stranger.post(path, strings(2))).status).toBe(403)
  expect((await stranger.post(path, strings(900))).status).toBe(403)
  const lines = device.of(path).map(({ request }) => request.data)
  const many = await content(device, strings(900))
  expect(lines).toEqual([{ deep: [[hashed, hashed]] }, { deep: [[hashed, hashed]] }, many, many])
  await device.disable()
})

test('a query is no way round', async () => {
  const device = await enable(node.root)
  const path = `transit/keys/${fresh('none')}`
  const query = Array(2000).fill('a=1').join('&')
  const { bytes } = await growth(device, () => node.server.client('guess').get(`${path}?${query}`))
  expect(device.of(path).map(({ request }) => request.data)).toEqual(Array(2).fill(await content(device, query)))
  expect(bytes).toBeLessThan(query.length)
  await device.disable()
})

test('a caller’s fields, whatever strings they are, take eight bytes of a file for each that was sent, and 12 KiB', async () => {
  const device = await enable(node.root)
  const key = await node.key()
  for (const [length, count] of [
    [1, 50],
    [1, 700],
    [1, 3000],
    [8, 3000],
    [16, 3000],
    [30, 2000],
    [80, 800],
  ] as const) {
    const body = JSON.stringify({ unknown: Array(count).fill('x'.repeat(length)) })
    const ask = () => node.root.post(`transit/decrypt/${key}`, body)
    const { reply, bytes } = await growth(device, ask)
    expect(reply.status).toBe(400)
    expect(bytes, `${count} strings of ${length}`).toBeLessThan(8 * body.length + 3 * 4096)
    const [line] = device.of(`transit/decrypt/${key}`).slice(-1)
    const isWhole = 80 * count < 4096 + 4 * body.length && 80 * count < 256 * 1024
    expect(line?.request.data, `${count} strings of ${length}`).toEqual(
      isWhole ? { unknown: Array(count).fill(hashed) } : await content(device, body),
    )
  }
  const numbers = JSON.stringify({ unknown: Array(3000).fill(1) })
  const names = JSON.stringify({
    unknown: Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [nameOf(n), true])),
  })
  for (const body of [numbers, names]) {
    const { bytes } = await growth(device, () => node.root.post(`transit/decrypt/${key}`, body))
    expect(bytes).toBeLessThan(8 * body.length + 3 * 4096)
  }
  await device.disable()
})

test('a caller’s fields are on record one by one up to 256 KiB of a line; of a refused request up to 16 KiB of its body', async () => {
  const device = await enable(node.root)
  const [key, other] = [await node.key(), await node.key()]
  const items = (count: number) => JSON.stringify({ batch_input: Array(count).fill({ plaintext: hello }) })
  await done(node.root.post(`transit/encrypt/${key}`, items(2000)))
  const [whole] = device.of(`transit/encrypt/${key}`)
  expect(whole?.request.data).toEqual({ batch_input: Array(2000).fill({ plaintext: await device.hash(hello) }) })
  const { reply, bytes } = await growth(device, () => done(node.root.post(`transit/encrypt/${other}`, items(20_000))))
  const [request, response] = device.of(`transit/encrypt/${other}`)
  expect(request?.request.data).toEqual(await content(device, items(20_000)))
  expect(response?.response?.data).toEqual(await content(device, reply.text))
  expect(bytes).toBeLessThan(items(20_000).length)
  const denied = await node.limited('path "transit/encrypt/nothing" { capabilities = ["update"] }')
  for (const count of [100, 1000]) expect((await denied.post(`transit/decrypt/${key}`, items(count))).status).toBe(403)
  const refused = device.of(`transit/decrypt/${key}`).map((line) => line.request.data)
  const few = { batch_input: Array(100).fill({ plaintext: await device.hash(hello) }) }
  const many = await content(device, items(1000))
  expect(refused).toEqual([few, few, many, many])
  await device.disable()
})

test('a list of many names is on record name by name, one of many shorter than seven letters by its digest', async () => {
  const device = await enable(node.root)
  const look = async (names: readonly string[]) => {
    const made = await done(node.root.post('auth/token/create', { policies: names, no_default_policy: true }))
    const reply = await done(node.root.post('auth/token/lookup', { token: made.string('auth.client_token') }))
    const [line] = device.of('auth/token/lookup').slice(-1)
    return [line?.response?.data, reply.text] as const
  }
  const [whole] = await look(Array.from({ length: 300 }, (_, index) => `name${100 + index}`))
  expect(whole).toMatchObject({ policies: Array(300).fill(hashed) })
  const [digest, text] = await look(Array.from({ length: 300 }, (_, index) => `${100 + index}`))
  expect(digest).toEqual(await content(device, text))
  await device.disable()
})

test('a long answer is on record by its digest and length, a short one by its fields', async () => {
  const device = await enable(node.root)
  const ask = (count: number) =>
    done(
      node.root.post('sys/capabilities-self', {
        paths: Array.from({ length: count }, (_, index) => `secret/${index}`),
      }),
    )
  const long = await ask(6000)
  await ask(1)
  const [first, second] = device.of('sys/capabilities-self').filter(({ type }) => type === 'response')
  expect(first?.response?.data).toEqual(await content(device, long.text))
  expect(second?.response?.data).toEqual({ 'secret/0': [hashed], capabilities: [hashed] })
  await device.disable()
})
