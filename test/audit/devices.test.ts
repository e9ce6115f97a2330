import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { done, expectRefused, hello } from '../api/node.ts'
import { runDirectory } from '../support/directory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { enable, hidden } from './device.ts'

let server: TestServer
let other: TestServer
beforeAll(async () => {
  server = await startServer({ workers: 2 })
  other = await startServer({ joins: server, workers: 2 })
}, 120_000)
afterAll(async () => {
  await other[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

test('a device is listed with its options, at the top level too, and gone when it is disabled', async () => {
  const root = server.client()
  const device = await enable(root, { mode: '0600' })
  const shown = {
    type: 'file',
    path: `${device.path}/`,
    description: '',
    local: false,
    options: { file_path: device.file, mode: '0600' },
  }
  for (const client of [root, other.client()]) {
    expect((await client.get('sys/audit')).body).toMatchObject({
      data: { [`${device.path}/`]: shown },
      [`${device.path}/`]: shown,
    })
  }
  expect((await root.delete(`sys/audit/${device.path}`)).status).toBe(204)
  expect((await root.delete(`sys/audit/${device.path}`)).status).toBe(204)
  expect((await root.get('sys/audit')).body).toMatchObject({ data: {} })
})

test('the request that enables the first device is answered on record, behind the test line', async () => {
  const device = await enable(server.client())
  const [probe, answer] = device.lines()
  expect(probe).toMatchObject({ type: 'request', request: { path: 'sys/audit/test' }, chain: { sequence: 1 } })
  expect(answer).toMatchObject({ type: 'response', request: { path: `sys/audit/${device.path}`, operation: 'update' } })
  await device.disable()
})

test('once an enable is answered, every worker of every node writes to the device; once a disable is, none does', async () => {
  for (let round = 0; round < 5; round++) {
    const device = await enable([server, other][round % 2]?.client() ?? server.client())
    const asked: string[] = []
    // Each call is a connection of its own, so that the workers take turns.
    for (let call = 0; call < 4; call++) {
      for (const { client } of [server, other]) {
        asked.push((await done(client().post('transit/random', {}))).string('request_id'))
      }
    }
    const seen = device.of('transit/random')
    for (const id of asked) expect(seen.filter(({ request }) => request.id === id)).toHaveLength(2)
    expect(new Set(seen.map(({ chain }) => chain.incarnation)).size).toBe(4)
    await device.disable()
    const size = device.text().length
    for (const { client } of [server, other, server, other]) await done(client().post('transit/random', {}))
    expect(device.text().length).toBe(size)
  }
})

test('audit-hash is the same from every worker of every node, and another for another device', async () => {
  const [one, two] = [await enable(server.client()), await enable(server.client())]
  const ask = async (node: TestServer, path: string) =>
    (await done(node.client().post(`sys/audit-hash/${path}`, { input: hello }))).body
  const first = await ask(server, one.path)
  expect(first).toMatchObject({ hash: expect.stringMatching(hidden), data: { hash: expect.stringMatching(hidden) } })
  for (const node of [server, other, other, server]) {
    expect(await ask(node, one.path)).toMatchObject({ hash: (first as { hash: string }).hash })
  }
  expect(await two.hash(hello)).not.toBe(await one.hash(hello))
  expectRefused(await server.client().post('sys/audit-hash/nope', { input: 'x' }), 400, 'unknown audit backend: nope/')
  expectRefused(await server.client().post(`sys/audit-hash/${one.path}`, {}), 400, 'the "input" parameter is empty')
  await one.disable()
  await two.disable()
})

test('audit devices want sudo; audit-hash does not', async () => {
  const root = server.client()
  const device = await enable(root)
  const policy = 'path "sys/audit*" { capabilities = ["create", "read", "update", "delete", "list"] }'
  await done(root.post('sys/policies/acl/auditor', { policy }))
  const made = await done(root.post('auth/token/create', { policies: ['auditor'] }))
  const auditor = server.client(made.string('auth.client_token'))
  const options = { file_path: join(mkdtempSync(join(runDirectory(), 'audit-')), 'x') }
  for (const reply of [
    await auditor.get('sys/audit'),
    await auditor.post('sys/audit/mine', { type: 'file', options }),
    await auditor.delete(`sys/audit/${device.path}`),
  ]) {
    expect(reply.status).toBe(403)
    expect(reply.text).toContain('sudo')
  }
  expect((await auditor.post(`sys/audit-hash/${device.path}`, { input: 'x' })).status).toBe(200)
  await device.disable()
})

test('a path that is taken, above or below it, or is no path, is refused; unknown options are told', async () => {
  const root = server.client()
  const device = await enable(root)
  const directory = mkdtempSync(join(runDirectory(), 'audit-'))
  const body = { type: 'file', options: { file_path: join(directory, 'x') } }
  for (const path of [device.path, `${device.path}/below`]) {
    expectRefused(await root.post(`sys/audit/${path}`, body), 400, `path already in use: ${device.path}/`)
  }
  expect((await root.post('sys/audit/a+b', body)).status).toBe(400)
  const odd = { ...body, options: { ...body.options, filter: 'x' } }
  const told = await root.post('sys/audit/odd', odd)
  expect([told.status, told.body]).toMatchObject([200, { warnings: ['option filter is unknown and has no effect'] }])
  await done(root.delete('sys/audit/odd'))
  await device.disable()
  rmSync(directory, { recursive: true })
})

test('only the directory that the configuration names may hold audit files', async () => {
  const directory = mkdtempSync(join(runDirectory(), 'audit-'))
  await using bound = await startServer({ joins: server, config: { audit: { directory, durability: 'fdatasync' } } })
  const root = bound.client()
  for (const file of [`${directory}/../x`, `${directory}x/y`, '/etc/cron.d/x']) {
    const reply = await root.post('sys/audit/bound', { type: 'file', options: { file_path: file } })
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining(`must lie in ${directory}`)])
  }
  const made = await root.post('sys/audit/bound', { type: 'file', options: { file_path: join(directory, 'log') } })
  expect(made.status).toBe(204)
  await done(root.post('transit/random', {}))
  await done(root.delete('sys/audit/bound'))
})
