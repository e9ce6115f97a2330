import { setTimeout as delay } from 'node:timers/promises'
import { issueMany, revokeMany } from '../authority/issued.ts'
import { load } from '../load.ts'
import type { StrongroomNode } from '../node.ts'
import { median } from '../statistics.ts'
import { startRevoked } from './revoked.ts'
import type { PressureBench } from './start.ts'

const entries = 1_000_000
const fresh = 1000
const sampleMilliseconds = 10

/** The cost of a list. */
export interface Cost {
  readonly cpuSeconds: number
  readonly seconds: number
  /** The largest growth of the worker's memory. */
  readonly grownBytes: number
}

/** Complete lists of a million entries, quiet and beside an authority that issues, and deltas of a thousand. */
export async function listsOfMillion(bench: PressureBench): Promise<string> {
  const { node: started, issuing } = await startRevoked(bench, entries)
  await using node = started
  await node.restart()
  const complete: Cost[] = []
  const delta: Cost[] = []
  for (let round = 1; round <= bench.pairs; round++) {
    bench.progress(`a list of a million: ${round} of ${bench.pairs}`)
    complete.push(await costOf(node, 'pki/crl/rotate'))
    await revokeMany(node, await issueMany(node, fresh))
    delta.push(await costOf(node, 'pki/crl/rotate-delta'))
  }
  const issue = () => load(node.under(issuing.request), bench.seconds, bench.directory)
  await issue()
  const ratios: number[] = []
  for (let pair = 1; pair <= bench.pairs; pair++) {
    bench.progress(`issuing beside a list of a million: pair ${pair} of ${bench.pairs}`)
    const quiet = await issue()
    const [beside] = await whileBuilding(node, issue)
    ratios.push(beside.p99Milliseconds / quiet.p99Milliseconds)
  }
  const all = (costs: readonly Cost[], of: (cost: Cost) => number, digits: number): string =>
    `${median(costs.map(of)).toFixed(digits)}`
  const grown = Math.max(...complete.map(({ grownBytes }) => grownBytes)) / 2 ** 20
  return [
    `a complete list takes ${all(complete, ({ cpuSeconds }) => cpuSeconds, 2)} s CPU`,
    `${all(complete, ({ seconds }) => seconds, 2)} s in all, and at most ${grown.toFixed(0)} MiB`,
    `p99 of issuing meanwhile ${median(ratios).toFixed(1)} times the quiet one`,
    `a delta after ${fresh} revocations ${all(delta, ({ cpuSeconds }) => cpuSeconds, 3)} s CPU`,
  ].join('; ')
}

/** Calls a path, and measures its cost. */
export async function costOf(node: StrongroomNode, path: string): Promise<Cost> {
  const [cpuBefore, bytesBefore, began] = [node.cpuMicroseconds, node.workerBytes, performance.now()]
  let mostBytes = bytesBefore
  const sampling = setInterval(() => {
    mostBytes = Math.max(mostBytes, node.workerBytes)
  }, sampleMilliseconds)
  try {
    await node.call('GET', path)
  } finally {
    clearInterval(sampling)
  }
  return {
    cpuSeconds: (node.cpuMicroseconds - cpuBefore) / 1e6,
    seconds: (performance.now() - began) / 1000,
    grownBytes: mostBytes - bytesBefore,
  }
}

/** Does work while complete lists are built, one after the other. @returns its result, and how many were built */
async function whileBuilding<T>(node: StrongroomNode, work: () => Promise<T>): Promise<[T, number]> {
  let isOver = false
  const building = (async () => {
    let built = 0
    for (; !isOver; built++) {
      await node.call('GET', 'pki/crl/rotate')
      await delay(1)
    }
    return built
  })()
  try {
    const result = await work()
    isOver = true
    return [result, await building]
  } finally {
    isOver = true
    await building
  }
}
