import { median } from '../statistics.ts'
import { type Cost, costOf } from './lists.ts'
import { startRevoked } from './revoked.ts'
import type { PressureBench } from './start.ts'

const entries = 1_000_000
const shards = 256
const urls = { crl_distribution_points: 'http://crl.example/{{shard}}', enable_templating: true }

/**
 * A million entries on the complete list and spread over as many lists as there can be, and on the complete list alone.
 */
export async function shardsOfMillion(bench: PressureBench): Promise<string> {
  await using node = (await startRevoked(bench, entries)).node
  await node.restart()
  const alone: Cost[] = []
  const spread: Cost[] = []
  for (let round = 1; round <= bench.pairs; round++) {
    bench.progress(`shards of a million, without: ${round} of ${bench.pairs}`)
    alone.push(await costOf(node, 'pki/crl/rotate'))
  }
  await node.call('POST', 'pki/config/urls', urls)
  await node.call('POST', 'pki/config/crl', { crl_shards: shards })
  // A worker that has built such lists keeps some of the memory.
  await node.restart()
  for (let round = 1; round <= bench.pairs; round++) {
    bench.progress(`shards of a million: ${round} of ${bench.pairs}`)
    spread.push(await costOf(node, 'pki/crl/rotate'))
  }
  const shown = (costs: readonly Cost[]): string => {
    const cpu = median(costs.map(({ cpuSeconds }) => cpuSeconds)).toFixed(2)
    const seconds = median(costs.map((cost) => cost.seconds)).toFixed(2)
    const grown = Math.max(...costs.map(({ grownBytes }) => grownBytes)) / 2 ** 20
    return `${cpu} s CPU, ${seconds} s in all, and at most ${grown.toFixed(0)} MiB`
  }
  return `the complete list with ${shards} shards takes ${shown(spread)}; the complete list alone ${shown(alone)}`
}
