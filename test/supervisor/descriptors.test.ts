import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { TestNode, until } from './node.ts'

/** Limits the descriptors of a process (the soft limit of prlimit(1)). */
const limit = (pid: number, descriptors: number) =>
  execFileSync('prlimit', [`--pid=${pid}`, `--nofile=${descriptors}:`])
const none = 3
const plenty = 1000

/** Connections that a worker had no descriptor for. */
const missed = ({ log }: TestNode) => log.filter(({ msg }) => String(msg).startsWith('worker has no descriptor left'))

test('a worker without a free descriptor loses no client, and takes connections again when it has one', async () => {
  await using node = new TestNode({ workers: 2 })
  await node.ready
  const [poor = 0, rich = 0] = node.starts
  limit(poor, none)
  const asked = await Promise.all(Array.from({ length: 200 }, () => node.ask('/')))
  expect(asked.map(({ pid }) => pid)).toEqual(Array(200).fill(rich))
  expect(missed(node)).not.toEqual([])
  // Not every second connection takes the detour.
  expect(missed(node).length).toBeLessThan(50)
  limit(poor, plenty)
  await until('it answers again', async () => (await node.ask('/')).pid === poor)
  expect(node.starts).toEqual([poor, rich])
})

test('connections wait while no worker has a free descriptor', async () => {
  await using node = new TestNode()
  await node.ready
  const [worker = 0] = node.starts
  limit(worker, none)
  const asked = Promise.all(Array.from({ length: 3 }, () => node.ask('/')))
  await until('it was offered one twice', () => missed(node).length >= 2)
  limit(worker, plenty)
  expect((await asked).map(({ status }) => status)).toEqual([200, 200, 200])
  expect(node.starts).toEqual([worker])
})

test('a client of a worker without a free descriptor is let go when the node ends', async () => {
  await using node = new TestNode()
  await node.ready
  const [worker = 0] = node.starts
  limit(worker, none)
  const asked = node.ask('/').catch(({ code }) => code)
  await until('it was offered', () => missed(node).length >= 1)
  node.process.kill('SIGTERM')
  expect(await asked).toBe('ECONNRESET')
  expect(await node.ended).toBe(0)
})
