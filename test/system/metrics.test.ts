import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { childrenOf, commandLine, until } from '../attack/nodes.ts'
import { readMetric } from '../support/metric.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ workers: 2, config: { log: { level: 'debug' } } })
  await server.client().post('transit/keys/k')
}, 60_000)
afterAll(() => server?.[Symbol.asyncDispose]())

const encrypt = () => server.client().post('transit/encrypt/k', { plaintext: 'c2VjcmV0LXBsYWludGV4dA==' })
const text = async () => (await server.client().get('sys/metrics?format=prometheus')).text
const read = (series: string) => readMetric(server.client(), series)

describe('sys/metrics', () => {
  test('needs a token that may read it', async () => {
    expect((await server.client('').get('sys/metrics')).status).toBe(403)
    const limited = await server.client().post('auth/token/create', { policies: ['default'] })
    expect((await server.client(limited.string('auth.client_token')).get('sys/metrics')).status).toBe(403)
  })

  test('is JSON with the five lists of the reference', async () => {
    await encrypt()
    const { status, body } = await server.client().get('sys/metrics')
    expect(status).toBe(200)
    expect(body).toEqual({
      Timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC$/),
      Gauges: expect.arrayContaining([{ Name: 'vault.core.unsealed', Value: 1, Labels: {} }]),
      Points: [],
      Counters: expect.arrayContaining([expect.objectContaining({ Name: 'vault.cache.hit' })]),
      Samples: expect.arrayContaining([expect.objectContaining({ Name: 'vault.route.update.transit-' })]),
    })
  })

  test('is the text format for whoever asks by query or by Accept', async () => {
    const asked = await server.client().get('sys/metrics?format=prometheus')
    const accepted = await server.client().call('GET', 'sys/metrics', undefined, {
      Accept: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    })
    for (const reply of [asked, accepted]) {
      expect(reply.status).toBe(200)
      expect(reply.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/)
      expect(reply.text).toContain('\nvault_core_handle_request_count ')
    }
  })

  test('refuses another format in plain text', async () => {
    const reply = await server.client().get('sys/metrics?format=xml')
    expect([reply.status, reply.headers['content-type']]).toEqual([400, 'text/plain'])
    expect(reply.text).toBe('metric response format "xml" unknown')
  })

  test('counts what all workers of the node have done, whichever is asked', async () => {
    const before = await read('vault_route_update_transit__count')
    const calls = await read('strongroom_hsm_operations{operation="encrypt"}')
    for (let i = 0; i < 20; i++) await encrypt()
    for (let i = 0; i < 4; i++) {
      expect(await read('vault_route_update_transit__count')).toBe(before + 20)
      expect(await read('strongroom_hsm_operations{operation="encrypt"}')).toBe(calls + 20)
    }
    expect((await text()).match(/^strongroom_worker_resident_memory_bytes\{worker="\d+"\} \d+$/gm)).toHaveLength(2)
  })

  test('tells a creation from an update', async () => {
    const before = await read('vault_route_create_transit__count')
    await server.client().post('transit/encrypt/made-by-use', { plaintext: 'eA==' })
    expect(await read('vault_route_create_transit__count')).toBe(before + 1)
  })

  test('does not shrink when a worker is killed', async () => {
    await encrypt()
    await text()
    const before = await read('vault_route_update_transit__count')
    const workers = () => childrenOf(server.pid).filter((pid) => commandLine(pid).includes('/worker.ts'))
    const [doomed = 0] = workers()
    process.kill(doomed, 'SIGKILL')
    // A connection may still be handed to the worker that is gone.
    const healthy = () => read('strongroom_hsm_healthy_workers').catch(() => 0)
    await until(async () => !workers().includes(doomed) && (await healthy()) === 2)
    expect(await read('vault_route_update_transit__count')).toBe(before)
  }, 30_000)
})

describe('the log at level debug', () => {
  test('has a line for each request, with no secret in it', async () => {
    await encrypt()
    await server.client().get(`auth/token/lookup/${server.rootToken}`)
    const lines = server
      .output()
      .split('\n')
      .filter((line) => line.includes('"msg":"request"'))
    const line = lines.map((one) => JSON.parse(one)).find(({ path }) => path === '/v1/transit/encrypt/k')
    expect(line).toMatchObject({ level: 20, method: 'POST', status: 200, milliseconds: expect.any(Number) })
    expect(lines.join('\n')).not.toContain(server.rootToken)
    expect(lines.join('\n')).not.toContain('c2VjcmV0LXBsYWludGV4dA')
  })
})
