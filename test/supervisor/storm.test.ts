import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { alive, TestNode, until } from './node.ts'

const openOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length

const residentMebibytes = (pid: number) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

/** Opens so many connections at once, and closes each without a word as soon as it is there. */
async function storm(address: string, connections: number): Promise<void> {
  const { hostname, port } = new URL(address)
  const closed = Array.from({ length: connections }, () => {
    const socket = connect(Number(port), hostname, () => socket.destroy())
    socket.on('error', () => {})
    return once(socket, 'close')
  })
  await Promise.all(closed)
}

/** Node's time limit for headers ends clients whose last packets the listening socket's full queue dropped. */
const forgottenMilliseconds = 60_000
/** What 40,000 connections would leave at 3 KiB each. */
const leakMebibytes = 100

test('storms of 5000 connections end no process, hold up no other client for ever, and leave neither descriptors nor memory', async () => {
  await using node = new TestNode({ workers: 2 })
  const address = await node.ready
  const all = [node.process.pid ?? 0, ...node.starts]
  await node.askAll('/', 2)
  const before = all.map((pid) => ({ pid, open: openOf(pid), resident: residentMebibytes(pid) }))
  for (let each = 0; each < 8; each++) {
    const [{ status }] = await Promise.all([node.ask('/'), storm(address, 5000)])
    expect(status).toBe(200)
    await until('it is over', () => before.every(({ pid, open }) => openOf(pid) <= open), forgottenMilliseconds)
  }
  expect(all.every(alive)).toBe(true)
  expect(node.starts).toHaveLength(2)
  for (const { pid, resident } of before) expect(residentMebibytes(pid)).toBeLessThan(resident + leakMebibytes)
}, 600_000)

test('after a storm each worker has its turn', async () => {
  await using node = new TestNode({ workers: 2 })
  await storm(await node.ready, 5000)
  const turns = new Map<number, number>()
  for (let each = 0; each < 100; each++) {
    const { pid } = await node.ask('/')
    turns.set(pid, (turns.get(pid) ?? 0) + 1)
  }
  for (const worker of node.starts) expect(turns.get(worker)).toBeGreaterThan(25)
})
