import { type Load, load } from '../load.ts'
import type { StrongroomNode } from '../node.ts'
import { prepareRows } from '../rows.ts'
import { median, spread } from '../statistics.ts'
import { type PressureBench, startNode } from './start.ts'

/** An encrypt of 64 bytes by two workers and by one, in interleaved pairs. */
export async function twoWorkers(bench: PressureBench): Promise<string> {
  await using one = await startNode(bench, 1)
  await using two = await startNode(bench, 2)
  const measures = [await measureOf(one, bench), await measureOf(two, bench)] as const
  const pairs: { one: Load; two: Load }[] = []
  for (let pair = 1; pair <= bench.pairs; pair++) {
    bench.progress(`two workers: pair ${pair} of ${bench.pairs}`)
    pairs.push({ one: await measures[0](), two: await measures[1]() })
  }
  const cost = spread(pairs.map((pair) => pair.two.cpuMicrosecondsPerRequest / pair.one.cpuMicrosecondsPerRequest))
  const rate = median(pairs.map((pair) => pair.two.requestsPerSecond / pair.one.requestsPerSecond))
  const quartiles = `${cost.lowerQuartile.toFixed(2)}–${cost.upperQuartile.toFixed(2)}`
  return `CPU of an encrypt ${cost.median.toFixed(2)} (${quartiles}) of one worker's, ${rate.toFixed(2)} times its requests/s`
}

async function measureOf(node: StrongroomNode, bench: PressureBench): Promise<() => Promise<Load>> {
  const { request } = await (await prepareRows(node))('encrypt 64 B')
  const measure = () => load(node.under(request), bench.seconds, bench.directory)
  await measure()
  return measure
}
