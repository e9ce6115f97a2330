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
 * The same rows of two checkouts of the project, each served from a database and a token of its own, in pairs that
 * alternate which comes first. @returns Markdown: medians, and quartiles of the ratio pair by pair
 */
export async function against(options: AgainstOptions): Promise<string> {
  const { checkout, directory, node, titles } = options
  await using other = await StrongroomNode.start({ directory: join(directory, 'other'), profiles: undefined, checkout })
  const [ownRow, otherRow] = [await prepareRows(node), await prepareRows(other)]
  const rows: string[][] = []
  for (const title of titles) {
    const sides = {
      own: node.under((await ownRow(title)).request),
      other: other.under((await otherRow(title)).request),
    }
    for (const side of [sides.other, sides.own]) await load(side, warmSeconds, directory)
    const pairs: Pair[] = []
    for (let pair = 1; pair <= options.pairs; pair++) {
      options.progress(`${title}: pair ${pair} of ${options.pairs}`)
      const measure = (side: keyof typeof sides) => load(sides[side], options.seconds, directory)
      if (pair % 2 === 0) {
        const own = await measure('own')
        pairs.push({ own, other: await measure('other') })
      } else {
        const before = await measure('other')
        pairs.push({ other: before, own: await measure('own') })
      }
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
