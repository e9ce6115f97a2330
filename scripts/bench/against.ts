import { join } from 'node:path'
import { type Load, load } from './load.ts'
import { StrongroomNode } from './node.ts'
import { prepareRows } from './rows.ts'
import { median, spread } from './statistics.ts'
import { markdown } from './table.ts'

export interface AgainstOptions {
  /** The other checkout, set up: an earlier commit. */
  readonly checkout: string
  readonly node: StrongroomNode
  readonly titles: readonly string[]
  readonly pairs: number
  readonly seconds: number
  readonly directory: string
  progress(text: string): void
}

interface Pair {
  readonly other: Load
  readonly own: Load
}

const warmSeconds = 2

/**
 * The same rows of two checkouts of the project, each served from a database and a token of its own. For every pair both
 * start anew, in turns first: one process of a program may take a sixth more than another, for as long as it lives.
 * @returns Markdown: medians, and quartiles of the ratio pair by pair
 */
export async function against(options: AgainstOptions): Promise<string> {
  const { checkout, directory, node, titles } = options
  await using other = await StrongroomNode.start({ directory: join(directory, 'other'), profiles: undefined, checkout })
  const nodes = { own: node, other }
  const [ownRow, otherRow] = [await prepareRows(node), await prepareRows(other)]
  const rows: string[][] = []
  for (const title of titles) {
    const requests = { own: (await ownRow(title)).request, other: (await otherRow(title)).request }
    const measure = (side: keyof Pair, seconds: number) => load(nodes[side].under(requests[side]), seconds, directory)
    const pairs: Pair[] = []
    for (let pair = 1; pair <= options.pairs; pair++) {
      options.progress(`${title}: pair ${pair} of ${options.pairs}`)
      const order = pair % 2 === 0 ? (['own', 'other'] as const) : (['other', 'own'] as const)
      for (const side of order) await nodes[side].restart()
      for (const side of order) await measure(side, warmSeconds)
      const loads = [await measure(order[0], options.seconds), await measure(order[1], options.seconds)] as const
      pairs.push(order[0] === 'own' ? { own: loads[0], other: loads[1] } : { other: loads[0], own: loads[1] })
    }
    rows.push(cells(title, pairs))
  }
  return markdown(
    ['operation', 'other µs', 'own µs', 'own / other (quartiles)', 'other requests/s', 'own requests/s'],
    rows,
  )
}

function cells(title: string, pairs: readonly Pair[]): string[] {
  const cost = (side: keyof Pair) => median(pairs.map((pair) => pair[side].cpuMicrosecondsPerRequest)).toFixed(1)
  const rate = (side: keyof Pair) => median(pairs.map((pair) => pair[side].requestsPerSecond)).toFixed(0)
  const ratio = spread(pairs.map(({ own, other }) => own.cpuMicrosecondsPerRequest / other.cpuMicrosecondsPerRequest))
  const quartiles = `${ratio.lowerQuartile.toFixed(3)}–${ratio.upperQuartile.toFixed(3)}`
  return [title, cost('other'), cost('own'), `${ratio.median.toFixed(3)} (${quartiles})`, rate('other'), rate('own')]
}
