import type { Beside } from './beside.ts'
import { type Load, load } from './load.ts'
import { operationOf } from './operations.ts'
import type { Row } from './rows.ts'
import type { Server } from './server.ts'
import { warm, windowSeconds } from './warm.ts'

/** The measurements of one pair: all three are made right after each other. */
export interface Pair {
  /** CPU of one call into the token; undefined where there is none. */
  readonly rawMicroseconds: number | undefined
  readonly minimal: Load
  readonly strongroom: Load
}

export interface Measuring {
  readonly beside: Beside
  readonly pairs: number
  readonly seconds: number
  /** For files of the load generator. */
  readonly directory: string
  progress(text: string): void
}

const rawMilliseconds = 200

/** Pairs of one row, interleaved, so that other work of the machine affects both sides alike. */
export async function measure(row: Row, strongroom: Server, options: Measuring): Promise<Pair[]> {
  const { beside, seconds, directory, progress } = options
  const minimal = await beside.minimal(row.title)
  const { slow } = operationOf(row.title)
  const rawLength = slow ? 1000 * seconds : rawMilliseconds
  const measured: Pair[] = []
  for (const server of [minimal, strongroom]) {
    if (slow) await load(server, seconds, directory)
    else await warm(async () => (await load(server, windowSeconds, directory)).cpuMicrosecondsPerRequest)
  }
  await beside.raw(row.title, rawMilliseconds)
  for (let pair = 1; pair <= options.pairs; pair++) {
    progress(`${row.title}: pair ${pair} of ${options.pairs}`)
    const raw = await beside.raw(row.title, rawLength)
    measured.push({
      rawMicroseconds: raw.operations === 0 ? undefined : raw.cpuMicroseconds / raw.operations,
      minimal: await load(minimal, seconds, directory),
      strongroom: await load(strongroom, seconds, directory),
    })
  }
  return measured
}
