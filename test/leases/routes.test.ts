import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAuthenticator } from '../../src/auth/authenticate.ts'
import { Policies } from '../../src/auth/policies.ts'
import type { Engine } from '../../src/engine.ts'
import { createLog } from '../../src/log.ts'
import type { Pipeline } from '../../src/request/exchange.ts'
import { createPipeline } from '../../src/request/pipeline.ts'
import { table } from '../../src/system/index.ts'
import { createLeaseWorld, type LeaseWorld } from './world.ts'

/** sys/leases as clients call it, through the whole pipeline. */

let world: LeaseWorld
let pipeline: Pipeline
beforeAll(async () => {
  world = await createLeaseWorld(2)
  const { database, tokens, leases } = world.node
  const policies = new Policies({ database, clock: world.clock })
  const start = async () => {
    // By a worker that has not seen the token, which was deleted behind the server's back.
    await world.nodes[1]?.tidy()
    return true
  }
  const context = { leases, tokens, start, status: { clock: world.clock } }
  const system: Engine = { type: 'system', context, routes: Object.values(table) }
  pipeline = createPipeline({
    mounts: { find: () => ({ uuid: '', path: 'sys/', type: 'system', config: {} }) },
    authenticator: createAuthenticator({ tokens, policies, hashAccessor: String }),
    engines: new Map([['system', system]]),
    log: createLog('silent'),
  })
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
})

async function ask(method: string, path: string, body?: unknown, token = world.rootToken) {
  const [rawPath = '', query = ''] = `/v1/sys/${path}`.split('?')
  const reply = await pipeline.handle({
    ...{ id: randomUUID(), method, rawPath, query, headers: { 'x-vault-token': token }, remoteAddress: '127.0.0.1' },
    remotePort: 1,
    receivedAt: 0,
    body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
    clientCertificate: undefined,
  })
  const text = reply.body.toString()
  return { status: reply.status, body: text === '' ? undefined : JSON.parse(text) }
}
const lease = async (path = 'issue/a', more = {}) => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  return (await world.node.issue(row, path, { path, ...more })).leaseId
}
const refused = (...errors: string[]) => ({ status: 400, body: { errors } })
const done = { status: 204, body: undefined }
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)

test('a look-up of a lease shows when it was issued and when it ends', async () => {
  const id = await lease()
  for (const method of ['POST', 'PUT']) {
    const { status, body } = await ask(method, 'leases/lookup', { lease_id: id })
    expect(status).toBe(200)
    expect(body.data).toEqual({
      ...{ id, issue_time: time, expire_time: time, last_renewal: null, renewable: true },
      ttl: expect.any(Number),
    })
  }
  expect(await ask('POST', 'leases/lookup', { lease_id: 'x' })).toEqual(refused('invalid lease'))
  expect(await ask('POST', 'leases/lookup', {})).toEqual(refused('lease_id must be specified'))
})

test.each(['leases/renew', 'renew'])('%s answers with the envelope’s lease fields', async (path) => {
  const id = await lease('issue/a', { ttlSeconds: 100, maxTtlSeconds: 250 })
  const { status, body } = await ask('PUT', path, { lease_id: id, increment: 60 })
  expect(status).toBe(200)
  expect(body).toMatchObject({ lease_id: id, renewable: true, lease_duration: 60, data: null, warnings: null })
  expect((await ask('POST', `${path}/${id}`, { increment: '90s' })).body).toMatchObject({ lease_duration: 90 })
  expect((await ask('POST', path, { lease_id: id, increment: 1000 })).body.warnings).toEqual([
    expect.stringContaining('capped'),
  ])
  expect((await ask('POST', 'leases/lookup', { lease_id: id })).body.data.last_renewal).toEqual(time)
  expect(await ask('POST', path, { lease_id: 'x' })).toEqual(refused('lease not found'))
  expect(await ask('POST', path)).toEqual(refused('lease_id must be specified'))
})

test.each(['leases/revoke', 'revoke'])('%s takes back one, named in the path or the body', async (path) => {
  const [a, b] = [await lease(), await lease()]
  expect(await ask('PUT', path, { lease_id: a })).toEqual(done)
  expect(await ask('POST', `${path}/${b}`, { sync: true })).toEqual(done)
  expect(await ask('POST', path, { lease_id: a })).toEqual(done)
  for (const id of [a, b])
    expect(await ask('POST', 'leases/lookup', { lease_id: id })).toEqual(refused('invalid lease'))
  expect(await ask('POST', path)).toEqual(refused('lease_id must be specified'))
})

test.each([['leases/'], ['']])('sys/%srevoke-prefix and revoke-force take back a folder', async (base) => {
  const at = `p${base.length}`
  const ids = [await lease(`${at}/x`), await lease(`${at}/x`)]
  expect(await ask('PUT', `${base}revoke-prefix/shop/${at}/x`, { sync: true })).toEqual(done)
  expect(await ask('LIST', `leases/lookup/shop/${at}`)).toEqual({ status: 404, body: { errors: [] } })
  ids.push(await lease(`${at}/y`))
  expect(await ask('PUT', `${base}revoke-prefix/shop/${at}/y`, { sync: false })).toEqual(done)
  expect((await ask('POST', 'leases/lookup', { lease_id: ids[2] })).body.data).toMatchObject({
    ttl: 0,
    renewable: false,
  })
  await world.node.expire()
  expect(await ask('POST', 'leases/lookup', { lease_id: ids[2] })).toEqual(refused('invalid lease'))
  const stuck = await lease(`${at}/z`)
  world.ledger.broken = () => true
  expect((await ask('PUT', `${base}revoke-prefix/shop/${at}/z`, { sync: true })).status).toBe(503)
  expect(await ask('PUT', `${base}revoke-force/shop/${at}/z`)).toEqual(done)
  world.ledger.broken = undefined
  expect(await ask('POST', 'leases/lookup', { lease_id: stuck })).toEqual(refused('invalid lease'))
})

test.each([
  ['leases/revoke-prefix', {}],
  ['revoke-prefix', { sync: null }],
])('%s with %j answers when everything is revoked', async (path, body) => {
  const at = randomUUID()
  const ids = [await lease(`${at}/x`), await lease(`${at}/x`)]
  expect(await ask('PUT', `${path}/shop/${at}`, body)).toEqual(done)
  for (const id of ids) expect(await ask('POST', 'leases/lookup', { lease_id: id })).toEqual(refused('invalid lease'))
  world.ledger.broken = () => true
  await lease(`${at}/y`)
  expect((await ask('PUT', `${path}/shop/${at}`, body)).status).toBe(503)
  world.ledger.broken = undefined
})

test('who means tokens is told where tokens are revoked, never that they were', async () => {
  for (const [path, body] of [
    ['leases/revoke-prefix/auth/token', {}],
    ['leases/revoke-force/auth', {}],
    ['revoke-prefix/auth', {}],
  ] as const) {
    expect(await ask('POST', path, body)).toEqual(refused(expect.stringContaining('auth/token/revoke')))
  }
})

test('listing shows folders and ids, page by page', async () => {
  const ids = await Promise.all([lease('list/a'), lease('list/a'), lease('list/b')])
  expect((await ask('LIST', 'leases/lookup/shop/list')).body.data).toEqual({ keys: ['a/', 'b/'] })
  expect((await ask('GET', 'leases/lookup?list=true')).body.data.keys).toEqual(['auth/', 'shop/'])
  expect((await ask('LIST', 'leases/lookup?after=auth/')).body.data.keys).toEqual(['shop/'])
  expect((await ask('LIST', 'leases/lookup?limit=1')).body.data.keys).toEqual(['auth/'])
  const names = ids.slice(0, 2).map((id) => id.slice('shop/list/a/'.length))
  const sorted = (await ask('LIST', 'leases/lookup/shop/list/a')).body.data.keys
  expect(new Set(sorted)).toEqual(new Set(names))
  expect((await ask('LIST', 'leases/lookup/shop/list/a?limit=1')).body.data.keys).toEqual(sorted.slice(0, 1))
  expect((await ask('LIST', `leases/lookup/shop/list/a?after=${sorted[0]}`)).body.data.keys).toEqual(sorted.slice(1))
})

test('tokens that end are leases under the path that made them: listed, looked up and revoked, not renewed', async () => {
  const { tokens } = world.node
  const { row: model } = await world.node.token()
  const make = async (more: object) => {
    const fields = { ...model, parent: null, numUses: 0, policies: ['default'], ttlSeconds: 600, renewable: true }
    return tokens.create({ ...fields, path: 'auth/token/of/a-test', ...more })
  }
  const made = [await make({}), await make({}), await make({}), await make({ path: 'auth/token/of/another' })]
  await make({ ttlSeconds: 0, policies: ['root'] })
  expect((await ask('LIST', 'leases/lookup/auth')).body.data.keys).toEqual(['token/'])
  expect((await ask('LIST', 'leases/lookup/auth/token')).body.data.keys).toContain('of/')
  expect((await ask('LIST', 'leases/lookup/auth/token/of')).body.data.keys).toEqual(['a-test/', 'another/'])
  expect((await ask('LIST', 'leases/lookup/auth/token/of?after=a-test/')).body.data.keys).toEqual(['another/'])
  expect(await ask('LIST', 'leases/lookup/auth/token/o')).toEqual({ status: 404, body: { errors: [] } })
  const list = async (query = '') => (await ask('LIST', `leases/lookup/auth/token/of/a-test${query}`)).body?.data.keys
  const ids: string[] = await list()
  expect(ids).toHaveLength(3)
  expect(await list('?limit=2')).toEqual(ids.slice(0, 2))
  expect(await list(`?after=${ids[0]}&limit=1`)).toEqual(ids.slice(1, 2))
  for (const { credential, row } of made)
    for (const secret of [credential, row.accessor]) expect(ids).not.toContain(secret)

  const lease_id = `auth/token/of/a-test/${ids[0]}`
  expect((await ask('POST', 'leases/lookup', { lease_id })).body.data).toEqual({
    ...{ id: lease_id, issue_time: time, expire_time: time, last_renewal: null, renewable: true, ttl: 600 },
  })
  const elsewhere = `auth/token/of/another/${ids[0]}`
  expect(await ask('POST', 'leases/lookup', { lease_id: elsewhere })).toEqual(refused('invalid lease'))
  const renewed = await ask('POST', 'leases/renew', { lease_id })
  expect(renewed).toEqual(refused('tokens cannot be renewed through this endpoint'))
  for (const unknown of [elsewhere, 'auth/token/create/abc', 'auth/'])
    expect(await ask('POST', 'leases/revoke', { lease_id: unknown })).toEqual(done)
  expect(await list()).toEqual(ids)
  for (const _ of ['revoked now', 'revoked already'])
    expect(await ask('POST', 'leases/revoke', { lease_id })).toEqual(done)
  expect(await list()).toEqual(ids.slice(1))
  const [alive] = await Promise.all(made.map(({ credential }) => tokens.lookup(credential)))
  expect(alive === undefined).toBe(made[0]?.row.id === ids[0])
})

test('lists and whole folders need sudo, one’s own renewal and look-up the default policy alone', async () => {
  const policy = (capabilities: string) => `path "sys/*" { capabilities = [${capabilities}] }`
  const { database, tokens } = world.node
  const policies = new Policies({ database, clock: world.clock })
  await policies.write('operator', policy('"update", "list"'))
  await policies.write('chief', policy('"update", "list", "sudo"'))
  const signIn = async (name: string) => {
    const { row } = await world.node.token()
    const made = await tokens.create({ ...row, parent: null, numUses: 0, policies: [name] })
    return made.credential
  }
  const [common, operator, chief] = [await signIn('default'), await signIn('operator'), await signIn('chief')]
  const id = await lease('own/x')
  for (const path of ['leases/revoke-prefix/shop/own', 'revoke-force/shop/own', 'revoke-prefix/shop/own']) {
    expect((await ask('POST', path, {}, operator)).status).toBe(403)
  }
  expect((await ask('LIST', 'leases/lookup/shop', undefined, operator)).status).toBe(403)
  expect((await ask('LIST', 'leases/lookup/shop', undefined, chief)).status).toBe(200)
  expect((await ask('POST', 'leases/lookup', { lease_id: id }, common)).status).toBe(200)
  expect((await ask('POST', 'leases/renew', { lease_id: id }, common)).status).toBe(200)
  expect((await ask('POST', 'leases/revoke', { lease_id: id }, common)).status).toBe(403)
  expect((await ask('POST', 'leases/revoke', { lease_id: id }, operator)).status).toBe(204)
  expect((await ask('POST', 'leases/revoke-prefix/shop/own', {}, chief)).status).toBe(204)
})

test('tidy answers 202 and revokes leases of tokens that are gone', async () => {
  const { row } = await world.node.token()
  const { leaseId } = await world.node.issue(row, 'lost')
  await world.sql('DELETE FROM tokens WHERE id = ?', [row.id])
  const { status, body } = await ask('POST', 'leases/tidy')
  expect(status).toBe(202)
  expect(body.warnings).toEqual([expect.stringContaining('Tidy operation successfully started')])
  expect(await ask('POST', 'leases/lookup', { lease_id: leaseId })).toEqual(refused('invalid lease'))
})
