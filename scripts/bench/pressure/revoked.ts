import { fillRevocations, issueMany, revokeMany } from '../authority/issued.ts'
import type { StrongroomNode } from '../node.ts'
import { prepareRows } from '../rows.ts'
import { spread } from '../statistics.ts'
import { type PressureBench, startNode } from './start.ts'

const perPair = 200
const warm = 400
/** Lists that are not rebuilt by themselves meanwhile. */
const settings = { auto_rebuild: true, enable_delta: true, expiry: '240h', delta_rebuild_interval: '120h' }

/** A new node whose authority has issued certificates and has a list of so many. */
export async function startRevoked(bench: PressureBench, entries: number) {
  const node = await startNode(bench)
  const rowOf = await prepareRows(node)
  const issuing = await rowOf('issue ec-256')
  await node.call('POST', 'pki/config/crl', settings)
  bench.progress(`making ${entries} revocations`)
  await fillRevocations(node, entries)
  return { node, issuing }
}

/** CPU of a revocation that waits for no list, in microseconds. */
async function revocationCost(node: StrongroomNode, count: number): Promise<number> {
  const serials = await issueMany(node, count)
  const before = node.cpuMicroseconds
  await revokeMany(node, serials)
  return (node.cpuMicroseconds - before) / count
}

/** A revocation with auto_rebuild beside a million entries, and beside a thousand. */
export async function revocationsBesideMany(bench: PressureBench): Promise<string> {
  await using small = (await startRevoked(bench, 1000)).node
  await using large = (await startRevoked(bench, 1_000_000)).node
  for (const node of [small, large]) await revocationCost(node, warm)
  const pairs: { small: number; large: number }[] = []
  for (let pair = 1; pair <= bench.pairs; pair++) {
    bench.progress(`revocations beside a million: pair ${pair} of ${bench.pairs}`)
    const isLargeFirst = pair % 2 === 0
    const one = await revocationCost(isLargeFirst ? large : small, perPair)
    const other = await revocationCost(isLargeFirst ? small : large, perPair)
    pairs.push(isLargeFirst ? { small: other, large: one } : { small: one, large: other })
  }
  const shown = (values: readonly number[], digits: number): string => {
    const { median, lowerQuartile, upperQuartile } = spread(values)
    return `${median.toFixed(digits)} (${lowerQuartile.toFixed(digits)}–${upperQuartile.toFixed(digits)})`
  }
  const [beside, alone] = [pairs.map((pair) => pair.large), pairs.map((pair) => pair.small)]
  const ratio = pairs.map((pair) => pair.large / pair.small)
  return `a revocation costs ${shown(beside, 0)} µs CPU, ${shown(alone, 0)} beside a thousand; pair by pair ${shown(ratio, 2)} times as much`
}
