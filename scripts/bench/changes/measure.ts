import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import type { StrongroomNode } from '../node.ts'
import { median, spread } from '../statistics.ts'
import { markdown } from '../table.ts'
import { warm, windowSeconds } from '../warm.ts'
import { ask } from './change.ts'
import { clientsOf } from './clients.ts'
import { type Drive, drive } from './drive.ts'
import { footprintOf } from './footprint.ts'
import { changes } from './list.ts'
import { MinimalChange } from './minimal.ts'
import { openObjects } from './objects.ts'

export interface MeasuringChanges {
  readonly node: StrongroomNode
  readonly titles: readonly string[]
  readonly pairs: number
  readonly seconds: number
  readonly directory: string
  progress(text: string): void
}

interface Pair {
  readonly minimal: Drive
  readonly strongroom: Drive
}

const heads = ['change', 'clients', 'minimal /s', 'Strongroom /s', 'of minimal rate', 'time ratio', 'p50 / p99 ms']

/**
 * Changes a second beside the minimal change, with one client and with sixteen.
 * @returns Markdown: medians of interleaved pairs
 */
export async function measureChanges(options: MeasuringChanges): Promise<string> {
  const { node, titles, directory, seconds, progress } = options
  const { socket } = node.database
  const schema = 'bench'
  const objects = openObjects(join(directory, 'objects'))
  const connection = await createConnection({ socketPath: socket, user: 'root', database: schema })
  const rows: string[][] = []
  for (const title of titles) {
    const change = changes[title]
    if (change === undefined) throw new Error(`no change ${title}`)
    for (const clients of [1, 16]) {
      const asked = await change.prepare(node, clients)
      // A change that removes its rows again leaves no trace: the rows are those of its first half.
      await ask(node, asked, 0, 1_000_000_000)
      const footprint = await footprintOf(connection, () => ask(node, asked, 0, 1_000_000_001))
      const prepared = { socket, schema, clients, change, footprint, objects }
      await using minimal = await MinimalChange.prepare(prepared)
      // On keys of its own: a key that is rotated for so long has thousands of versions.
      const warming = clientsOf(node, await change.prepare(node, clients), clients, directory)
      const plain = (length: number): Promise<Drive> => drive(minimal.step, clients, length)
      for (const side of [plain, warming]) await warm(async () => 1 / (await side(windowSeconds)).changesPerSecond)
      const ours = clientsOf(node, asked, clients, directory)
      const pairs: Pair[] = []
      for (let pair = 1; pair <= options.pairs; pair++) {
        progress(`${title}, ${clients} clients: pair ${pair} of ${options.pairs}`)
        pairs.push({ minimal: await plain(seconds), strongroom: await ours(seconds) })
      }
      rows.push(cells(title, clients, pairs))
    }
  }
  await connection.end()
  return markdown(heads, rows)
}

function cells(title: string, clients: number, pairs: readonly Pair[]): string[] {
  const over = (value: (pair: Pair) => number) => median(pairs.map(value))
  const share = spread(pairs.map(({ minimal, strongroom }) => strongroom.changesPerSecond / minimal.changesPerSecond))
  return [
    title,
    String(clients),
    over(({ minimal }) => minimal.changesPerSecond).toFixed(0),
    over(({ strongroom }) => strongroom.changesPerSecond).toFixed(0),
    `${(100 * share.median).toFixed(0)} % (${(100 * share.lowerQuartile).toFixed(0)}–${(100 * share.upperQuartile).toFixed(0)})`,
    (1 / share.median).toFixed(2),
    `${over(({ strongroom }) => strongroom.p50Milliseconds).toFixed(1)} / ${over(({ strongroom }) => strongroom.p99Milliseconds).toFixed(1)}`,
  ]
}
