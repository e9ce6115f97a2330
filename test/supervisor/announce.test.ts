import { expect, test } from 'vitest'
import { startServer } from '../support/server.ts'
import { alive, fetchAlone, TestNode, until } from './node.ts'

/** The state that a load balancer sees, over a connection of its own. */
async function health(url: string, query = '') {
  const { status, text } = await fetchAlone(`${url}/v1/sys/health${query}`)
  return { status, ...JSON.parse(text) }
}

test('a node that is asked to end says so in sys/health and serves on, sealed or not', async () => {
  await using server = await startServer({ workers: 2, config: { drain: { announceSeconds: 300 } } })
  const { url, pid } = server
  expect(await health(url)).toMatchObject({ status: 200, standby: false })
  process.kill(pid, 'SIGTERM')
  await until('sys/health fails', async () => (await health(url)).status === 503)
  // Connections go to the workers in turn.
  for (let each = 0; each < 4; each++) {
    expect(await health(url)).toMatchObject({ status: 503, sealed: false, standby: true })
  }
  expect((await health(url, '?sealedcode=473&activecode=200&standbycode=200&standbyok=true')).status).toBe(473)
  expect((await server.client().get('sys/mounts')).status).toBe(200)
  expect((await server.client().post('sys/seal', {})).status).toBe(204)
  expect(await health(url)).toMatchObject({ status: 503, sealed: true, standby: true })
  expect(server.output()).toContain('this node ends: sys/health says so for 300 s')
})

test('the announced end comes: listeners are closed and every process ends', async () => {
  await using node = new TestNode({ workers: 2, announceSeconds: 1 })
  const address = await node.ready
  node.process.kill('SIGTERM')
  await until('a worker announces the end', async () => (await node.ask('/ending')).answer === true)
  const refused = () =>
    fetchAlone(address).then(
      () => false,
      () => true,
    )
  await until('the listeners are closed', refused)
  expect(await node.ended).toBe(0)
  expect(node.starts.filter(alive)).toEqual([])
})

test('a worker that starts while the end is announced announces it too, and a second signal ends it', async () => {
  await using node = new TestNode({ announceSeconds: 300 })
  await node.ready
  node.process.kill('SIGTERM')
  await until('the worker announces the end', async () => (await node.ask('/ending')).answer === true)
  process.kill(node.starts[0] ?? 0, 'SIGKILL')
  await until('another announces it', async () => {
    const reply = await node.ask('/ending').catch(() => undefined)
    return reply?.pid === node.starts[1] && reply?.answer === true
  })
  node.process.kill('SIGTERM')
  expect(await node.ended).toBe(0)
})
