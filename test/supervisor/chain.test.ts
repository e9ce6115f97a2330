import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { readRecord } from '../../src/supervisor/record.ts'
import { alive, TestNode, until } from './node.ts'

/** The process ids of a node's living supervisors. */
const supervisors = (node: TestNode): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && alive(pid) && isOf(pid, node))

function isOf(pid: number, node: TestNode): boolean {
  try {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return line.includes('supervise.ts') && line.includes(node.directory)
  } catch {
    return false
  }
}

/** Upgrades so many times, each when the program before is drained. */
async function upgrade(node: TestNode, times: number): Promise<void> {
  for (let each = 1; each <= times; each++) {
    node.process.kill('SIGUSR2')
    await until('the new program serves', () => readRecord(node.directory)?.upgrades === each, 60_000)
    expect(readRecord(node.directory)?.failure).toBeUndefined()
    const drained = () => node.log.filter(({ msg }) => msg === 'the program before this one is drained')
    await until('the program before is drained', () => drained().length === each)
  }
  await until('the workers before are gone', () => node.starts.filter(alive).length === 1)
}

test('three upgrades leave one process that waits, the first, and its signals reach the newest program', async () => {
  await using node = new TestNode()
  const address = await node.ready
  await upgrade(node, 3)
  await until('those between are gone', () => supervisors(node).length === 2)
  expect(supervisors(node)).toContain(node.process.pid)
  expect((await node.ask('/')).pid).toBe(node.starts[3])
  expect(node.output).toEqual(Array(4).fill(`ready ${address}`))
  node.process.kill('SIGHUP')
  await until('it has read its configuration again', () => node.starts.length === 5)
  node.process.kill('SIGTERM')
  expect(await node.ended).toBe(0)
  expect(supervisors(node)).toEqual([])
  expect(node.starts.filter(alive)).toEqual([])
}, 240_000)

test('an upgrade that fails after another says nothing to the first process', async () => {
  await using node = new TestNode()
  await node.ready
  await upgrade(node, 1)
  node.order('fail')
  node.process.kill('SIGUSR2')
  await until('it has failed', () => readRecord(node.directory)?.failure !== undefined, 60_000)
  await until('its process is gone', () => supervisors(node).length === 2)
  node.process.kill('SIGTERM')
  expect(await node.ended).toBe(0)
}, 240_000)

test('after two upgrades a first process that is killed takes the newest program with it', async () => {
  await using node = new TestNode()
  await node.ready
  await upgrade(node, 2)
  node.process.kill('SIGKILL')
  await until('nobody is left', () => supervisors(node).length === 0 && !node.starts.some(alive))
}, 240_000)

test('after two upgrades a newest program that is killed ends the first process with 1', async () => {
  await using node = new TestNode()
  await node.ready
  await upgrade(node, 2)
  await until('the one between is gone', () => supervisors(node).length === 2)
  for (const pid of supervisors(node)) if (pid !== node.process.pid) process.kill(pid, 'SIGKILL')
  expect(await node.ended).toBe(1)
  await until('its worker is gone', () => !node.starts.some(alive))
}, 240_000)

test('a program that is killed while it is drained leaves the newest one serving', async () => {
  await using node = new TestNode()
  await node.ready
  await upgrade(node, 1)
  const between = supervisors(node).find((pid) => pid !== node.process.pid) ?? 0
  void node.ask('/forever').catch(() => undefined)
  await node.ask('/')
  node.process.kill('SIGUSR2')
  await until('the new program serves', () => readRecord(node.directory)?.upgrades === 2, 60_000)
  process.kill(between, 'SIGKILL')
  await until('its worker is gone', () => !alive(node.starts[1] ?? 0))
  expect((await node.ask('/')).pid).toBe(node.starts[2])
  node.process.kill('SIGTERM')
  expect(await node.ended).toBe(0)
}, 240_000)

test('an end that is asked for while the program between is drained reaches the newest', async () => {
  await using node = new TestNode({ limits: '{ drainSeconds: 1 }' })
  await node.ready
  await upgrade(node, 1)
  void node.ask('/forever').catch(() => undefined)
  await node.ask('/')
  node.process.kill('SIGUSR2')
  await until('the new program serves', () => readRecord(node.directory)?.upgrades === 2, 60_000)
  node.process.kill('SIGTERM')
  expect(await node.ended).toBe(0)
  await until('nobody is left', () => supervisors(node).length === 0 && !node.starts.some(alive))
}, 240_000)

test('SIGINT to both programs of an upgrade, as a terminal sends it, lets requests under way be answered', async () => {
  await using node = new TestNode()
  await node.ready
  await upgrade(node, 1)
  const newest = supervisors(node).find((pid) => pid !== node.process.pid) ?? 0
  await node.ask('/')
  const slow = node.ask('/slow')
  await sleep(200)
  node.process.kill('SIGINT')
  // By now the first supervisor has passed it on.
  await sleep(200)
  process.kill(newest, 'SIGINT')
  expect((await slow).pid).toBe(node.starts[1])
  expect(await node.ended).toBe(0)
}, 240_000)
