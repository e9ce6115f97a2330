import type { Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Measures, ServerProcess } from './serverprocess.ts'
import { dial, hearUntil } from './wire.ts'

/** Bodies in chunks of one byte take about as much memory as is counted for them. */

const connections = 16
/** One byte of a body in a buffer of its own takes some 500: those of a test then took 500 MB. */
const mostBytes = 150_000_000
const head = 'POST /shelf/keys/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
const ones = (count: number): string => '1\r\nx\r\n'.repeat(count)

let server: ServerProcess
beforeEach(async () => {
  server = await ServerProcess.start()
})
afterEach(() => server[Symbol.asyncDispose]())

const memory = (): Promise<Measures> => server.ask('measures')
const dialAll = (): Promise<Socket[]> => Promise.all(Array.from({ length: connections }, () => dial(server.port)))

test('a body in chunks of one byte takes no more memory than a few of its kind', async () => {
  const before = await memory()
  const clients = await dialAll()
  for (const client of clients) client.write(head + ones(65_000))
  let now = before
  while (now.heldBytes < connections * 65_000) now = await memory()
  expect(now.heldBytes).toBe(connections * 65_000)
  expect(now.residentBytes - before.residentBytes).toBeLessThan(mostBytes)
  for (const client of clients) client.destroy()
})

test('neither does what a client still sends that was refused', async () => {
  const before = await memory()
  const clients = await dialAll()
  let open = connections
  const refused = clients.map(async (client) => {
    client.once('close', () => open--)
    client.write(`${head}10001\r\n${'x'.repeat(65_537)}\r\n`)
    await hearUntil(client, /^HTTP\/1.1 413 /)
    client.write(ones(65_000))
  })
  let most = 0
  while (open > 0) most = Math.max(most, (await memory()).residentBytes)
  await Promise.all(refused)
  expect(most - before.residentBytes).toBeLessThan(mostBytes)
})

test('neither does a body whose caller is still looked up', async () => {
  const before = await memory()
  const many = await Promise.all(Array.from({ length: 4 }, dialAll))
  const asked = head.replace('Host', 'X-Vault-Token: unanswered\r\nHost')
  for (const client of many.flat()) client.write(`${asked}10001\r\n${'x'.repeat(65_537)}\r\n${ones(65_000)}`)
  let now = before
  for (let looks = 0; looks < 10; looks++) now = await memory()
  expect(now.residentBytes - before.residentBytes).toBeLessThan(mostBytes)
  for (const client of many.flat()) client.destroy()
})
