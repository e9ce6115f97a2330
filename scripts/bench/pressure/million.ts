import { fill } from '../bulk.ts'
import { type Load, load } from '../load.ts'
import type { StrongroomNode } from '../node.ts'
import { prepareRows } from '../rows.ts'
import { median, spread } from '../statistics.ts'
import { type PressureBench, startNode } from './start.ts'

const coldKeys = 200
const plaintext = Buffer.from('plain').toString('base64')

/** The costs of one size of the tables. */
interface Cost {
  readonly startMilliseconds: number
  readonly coldMilliseconds: number
  readonly warm: Load
}

/**
 * A start, the first encrypt with each of some keys, and encrypts with one key: beside a million keys, tokens and
 * leases, and beside a thousand.
 */
export async function million(bench: PressureBench): Promise<string> {
  await using small = await sized(bench, 1000)
  await using large = await sized(bench, 1_000_000)
  const pairs: { small: Cost; large: Cost }[] = []
  for (let pair = 1; pair <= bench.pairs; pair++) {
    bench.progress(`a million rows: pair ${pair} of ${bench.pairs}`)
    pairs.push({ small: await small.cost(), large: await large.cost() })
  }
  const start = (side: 'small' | 'large') =>
    (median(pairs.map((pair) => pair[side].startMilliseconds)) / 1000).toFixed(2)
  const ratio = (of: (cost: Cost) => number) => {
    const { median, lowerQuartile, upperQuartile } = spread(pairs.map((pair) => of(pair.large) / of(pair.small)))
    return `${median.toFixed(2)} (${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)})`
  }
  const warm = ratio(({ warm }) => warm.cpuMicrosecondsPerRequest)
  const cold = ratio(({ coldMilliseconds }) => coldMilliseconds)
  return `start ${start('large')} s (${start('small')} s beside a thousand); a warm encrypt ${warm}, a cold one ${cold} of its cost beside a thousand`
}

async function sized(bench: PressureBench, rows: number) {
  const node = await startNode(bench)
  for (let key = 0; key < coldKeys; key++) await node.call('POST', `transit/keys/cold${key}`, {})
  const { request } = await (await prepareRows(node))('encrypt 64 B')
  const { data } = await node.call('GET', 'sys/mounts')
  const { uuid } = (data as Record<string, { uuid: string }>)['transit/'] ?? { uuid: '' }
  bench.progress(`filling tables with ${rows} rows each`)
  await fill(node.database.url, uuid, rows)
  return {
    async cost(): Promise<Cost> {
      const startMilliseconds = await node.restart()
      const coldMilliseconds = await cold(node)
      await load(node.under(request), bench.seconds, bench.directory)
      const warm = await load(node.under(request), bench.seconds, bench.directory)
      return { startMilliseconds, coldMilliseconds, warm }
    },
    [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
  }
}

/** Mean time of the first encrypt with each of the keys since the start. */
async function cold(node: StrongroomNode): Promise<number> {
  const began = performance.now()
  for (let key = 0; key < coldKeys; key++) await node.call('POST', `transit/encrypt/cold${key}`, { plaintext })
  return (performance.now() - began) / coldKeys
}
