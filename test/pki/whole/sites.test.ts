import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectServed, until } from '../../attack/nodes.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { type Answer, dataOf } from '../api/authority.ts'
import { ocspStatus, readList } from './relying.ts'

/** Two sites of two nodes each: four supervisors with a worker each, one database. */

const stack = new AsyncDisposableStack()
const north: TestServer[] = []
const south: TestServer[] = []
let ca = ''

beforeAll(async () => {
  const [first, second] = [{ config: { site: 'north' } }, { config: { site: 'south' } }]
  const start = async (options: object): Promise<TestServer> => stack.use(await startServer({ workers: 1, ...options }))
  const one = await start(first)
  north.push(one, await start({ ...first, joins: one }))
  south.push(await start({ ...second, joins: one }), await start({ ...second, joins: one }))
  const root = one.client()
  await post(one, 'sys/mounts/pki/tune', { max_lease_ttl: '87600h' })
  ca = String(
    (await post(one, 'pki/root/generate/internal', { common_name: 'R', key_type: 'ec', ttl: '80000h' })).certificate,
  )
  expectServed(await root.post('pki/roles/r', { allow_any_name: true, key_type: 'ec', max_ttl: '720h' }))
}, 120_000)

afterAll(() => stack.disposeAsync())

async function post(node: TestServer, path: string, body = {}): Promise<Answer> {
  const reply = expectServed(await node.client().post(path, body))
  return reply.body === undefined ? {} : dataOf(reply)
}

const nodeOf = (nodes: readonly TestServer[], index: number): TestServer => nodes[index] as TestServer
const issue = async (node: TestServer): Promise<string> =>
  String((await post(node, 'pki/issue/r', { common_name: 'a.example', ttl: '24h' })).serial_number)
const plain = (serial: string): string => serial.replaceAll(':', '').replace(/^0+/, '')
const rotate = async (node: TestServer): Promise<void> => void expectServed(await node.client().get('pki/crl/rotate'))
const listOf = async (node: TestServer, path: string) =>
  readList(expectServed(await node.client('').get(`pki/${path}`)).text, ca)
const statusOf = (node: TestServer, responder: string, serial: string) =>
  ocspStatus(`${node.url}/v1/pki/${responder}`, ca, serial)

describe('two sites', { shuffle: false }, () => {
  test('each site has certificates and URLs of its own', async () => {
    const [mine, theirs] = [await issue(nodeOf(north, 1)), await issue(nodeOf(south, 0))]
    const serials = async (node: TestServer) =>
      dataOf(expectServed(await node.client().list('pki/certs'))).keys as string[]
    expect(await serials(nodeOf(north, 0))).toContain(mine)
    expect(await serials(nodeOf(north, 0))).not.toContain(theirs)
    expect(await serials(nodeOf(south, 1))).toContain(theirs)
    expect(await serials(nodeOf(south, 1))).not.toContain(mine)
    await post(nodeOf(north, 0), 'pki/config/cluster', { path: 'http://north.example/v1/pki' })
    await post(nodeOf(south, 0), 'pki/config/cluster', { path: 'http://south.example/v1/pki' })
    const path = async (node: TestServer) => dataOf(expectServed(await node.client().get('pki/config/cluster'))).path
    expect(await path(nodeOf(north, 1))).toBe('http://north.example/v1/pki')
    expect(await path(nodeOf(south, 1))).toBe('http://south.example/v1/pki')
  }, 60_000)

  test('a revocation is in the lists and answers of its own site, at once and on every node', async () => {
    const [mine, theirs] = [await issue(nodeOf(north, 0)), await issue(nodeOf(south, 0))]
    for (const node of [...north, ...south]) await statusOf(node, 'ocsp', mine)
    await post(nodeOf(north, 1), 'pki/revoke', { serial_number: mine })
    await post(nodeOf(south, 1), 'pki/revoke', { serial_number: theirs })
    for (const node of north) {
      expect(await statusOf(node, 'ocsp', mine)).toBe('revoked')
      const { serials } = await listOf(node, 'crl/pem')
      expect(serials.map(plain)).toContain(plain(mine))
      expect(serials.map(plain)).not.toContain(plain(theirs))
    }
    for (const node of south) {
      expect(await statusOf(node, 'ocsp', theirs)).toBe('revoked')
      const { serials } = await listOf(node, 'crl/pem')
      expect(serials.map(plain)).toContain(plain(theirs))
      expect(serials.map(plain)).not.toContain(plain(mine))
    }
  }, 60_000)

  test('a site does not know revocations of another, until there are unified lists', async () => {
    const serial = await issue(nodeOf(north, 0))
    const refused = await nodeOf(south, 0).client().post('pki/revoke', { serial_number: serial })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('not found')
    await post(nodeOf(south, 0), 'pki/config/crl', {
      auto_rebuild: true,
      unified_crl: true,
      cross_cluster_revocation: true,
    })
    await post(nodeOf(north, 1), 'pki/revoke', { serial_number: serial })
    await rotate(nodeOf(south, 1))
    for (const node of [...north, ...south]) {
      expect(await statusOf(node, 'unified-ocsp', serial)).toBe('revoked')
      expect((await listOf(node, 'unified-crl/pem')).serials.map(plain)).toContain(plain(serial))
    }
    expect((await listOf(nodeOf(south, 0), 'crl/pem')).serials.map(plain)).not.toContain(plain(serial))
    // Known to be revoked elsewhere: nothing is asked of anybody.
    const again = await post(nodeOf(south, 0), 'pki/revoke', { serial_number: serial })
    expect(again.revocation_time).toBeGreaterThan(0)
    const listed = dataOf(expectServed(await nodeOf(south, 1).client().list('pki/certs/unified-revoked')))
    expect(listed.keys).toContain(serial)
  }, 120_000)

  test('numbers of all lists of an issuer, local and unified, of both sites, never repeat', async () => {
    const numbers: bigint[] = []
    for (const node of [...north, ...south]) {
      await rotate(node)
      for (const path of ['crl/pem', 'unified-crl/pem']) numbers.push((await listOf(node, path)).number)
    }
    const locals = numbers.filter((_, index) => index % 2 === 0)
    expect(new Set(locals).size).toBe(locals.length)
    for (const [index, number] of numbers.entries()) {
      if (index >= 2) expect(number).toBeGreaterThanOrEqual(numbers[index - 2] as bigint)
    }
    expect(new Set(numbers).size).toBe(numbers.length)
  }, 60_000)

  test('a site passes a revocation of an unknown certificate on to the site that has it', async () => {
    const serial = await issue(nodeOf(north, 0))
    const asked = await post(nodeOf(south, 1), 'pki/revoke', { serial_number: serial })
    expect(asked.state).toBe('pending')
    const queue = dataOf(expectServed(await nodeOf(south, 0).client().list('pki/certs/revocation-queue')))
    expect(queue.keys).toContain(serial)
    await until(async () => {
      await delay(1000)
      return (await statusOf(nodeOf(north, 1), 'ocsp', serial)) === 'revoked'
    })
    expect(dataOf(expectServed(await nodeOf(north, 0).client().list('pki/certs/revoked'))).keys).toContain(serial)
  }, 180_000)
})
