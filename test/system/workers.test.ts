import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { done, fresh, hello } from '../api/node.ts'
import { until } from '../attack/nodes.ts'
import type { Client, Reply } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** A change by sys/ holds on every worker when it is answered. */

let server: TestServer
let root: Client
beforeAll(async () => {
  server = await startServer({ workers: 2 })
  root = server.client()
}, 60_000)
afterAll(() => server?.[Symbol.asyncDispose]())

/** Connections go to the workers in turn, so that each has some. */
const fromAll = (ask: () => Promise<Reply>) => Promise.all(Array.from({ length: 6 }, ask))
async function mounted(): Promise<string> {
  const path = fresh('m')
  await done(root.post(`sys/mounts/${path}`, { type: 'transit' }))
  await done(root.post(`${path}/keys/k`))
  for (const { status } of await fromAll(() => root.get(`${path}/keys/k`))) expect(status).toBe(200)
  return path
}

test('a moved mount is at the new path and not at the old one', async () => {
  for (let round = 0; round < 3; round++) {
    const [from, to] = [await mounted(), fresh('n')]
    const id = (await done(root.post('sys/remount', { from, to }))).string('data.migration_id')
    const [gone, there, told] = await Promise.all([
      fromAll(() => root.get(`${from}/keys/k`)),
      fromAll(() => root.post(`${to}/encrypt/k`, { plaintext: hello })),
      fromAll(() => root.get(`sys/remount/status/${id}`)),
    ])
    expect(gone.map(({ status }) => status)).toEqual(Array(6).fill(404))
    expect(there.map(({ status }) => status)).toEqual(Array(6).fill(200))
    for (const reply of told) expect(reply.string('data.migration_info.status')).toBe('success')
  }
})

test('a setting that was tuned is read from every worker', async () => {
  const path = await mounted()
  for (const description of ['one', 'two', 'three']) {
    await done(root.post(`sys/mounts/${path}/tune`, { description }))
    for (const reply of await fromAll(() => root.get(`sys/mounts/${path}/tune`))) {
      expect(reply.string('data.description')).toBe(description)
    }
  }
})

test('a reload disturbs no request that is under way', async () => {
  const path = await mounted()
  const encrypt = () => root.post(`${path}/encrypt/k`, { plaintext: hello })
  for (let round = 0; round < 5; round++) {
    const [reloaded, ...replies] = await Promise.all([
      root.post('sys/plugins/reload/backend', { mounts: [path] }),
      ...Array.from({ length: 10 }, encrypt),
    ])
    expect([reloaded, ...replies].map(({ status }) => status)).toEqual(Array(11).fill(200))
  }
})

test('a seal is in the audit log with its answer, though the keys are gone by then', async () => {
  const file = join(server.stateDirectory, 'audit.log')
  await done(root.post('sys/audit/file', { type: 'file', options: { file_path: file } }))
  expect((await root.post('sys/seal')).status).toBe(204)
  const lines = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const seals = lines.filter(({ request }) => request?.path === 'sys/seal').map(({ type }) => type)
  expect(seals).toEqual(['request', 'response'])
  await until(async () => (await server.client('').post('sys/unseal', { key: server.unsealSecret })).status === 200)
  expect((await root.get('sys/mounts')).status).toBe(200)
})
