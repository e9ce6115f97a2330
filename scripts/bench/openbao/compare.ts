import { clientsOf } from '../changes/clients.ts'
import type { Drive } from '../changes/drive.ts'
import { changes } from '../changes/list.ts'
import { type Load, load } from '../load.ts'
import type { StrongroomNode } from '../node.ts'
import { prepareRows } from '../rows.ts'
import { median, spread } from '../statistics.ts'
import { markdown } from '../table.ts'
import { warm, windowSeconds } from '../warm.ts'
import type { OpenBao } from './server.ts'

/** Rows of the table of operations that are prepared by calls of the API alone. */
const titles = [
  ...['encrypt 64 B', 'decrypt 64 B', 'rewrap 64 B', 'datakey', 'hmac sha2-256', 'random 32 B', 'encrypt 100 × 64 B'],
  ...['sign ecdsa-p256', 'verify ecdsa-p256', 'sign ed25519', 'sign rsa-2048', 'key read'],
  ...['issue ec-256, no_store', 'issue ec-256', 'sign a CSR, ec-256', 'certificate read'],
]

export interface Comparing {
  readonly strongroom: StrongroomNode
  readonly openBao: OpenBao
  /** Whether a row of this title is wanted. */
  wanted(title: string): boolean
  readonly pairs: number
  readonly seconds: number
  readonly directory: string
  progress(text: string): void
}

interface Pair<T> {
  readonly openBao: T
  readonly strongroom: T
}

/** The same requests to both, in interleaved pairs. @returns Markdown: a table of requests and one of changes */
export async function compare(options: Comparing): Promise<string> {
  return [await compareRequests(options), await compareChanges(options)].join('\n\n')
}

async function compareRequests(options: Comparing): Promise<string> {
  const { strongroom, openBao, directory } = options
  const rowsOf = { strongroom: await prepareRows(strongroom), openBao: await prepareRows(openBao) }
  const rows: string[][] = []
  for (const title of titles.filter(options.wanted)) {
    const servers = {
      openBao: openBao.under((await rowsOf.openBao(title)).request),
      strongroom: strongroom.under((await rowsOf.strongroom(title)).request),
    }
    const pairs = await pairsOf<Load>(title, options, {
      warm: async (side) => (await load(servers[side], windowSeconds, directory)).cpuMicrosecondsPerRequest,
      measure: (side) => load(servers[side], options.seconds, directory),
    })
    const cost = (pair: Pair<Load>) =>
      pair.strongroom.cpuMicrosecondsPerRequest / pair.openBao.cpuMicrosecondsPerRequest
    rows.push([
      title,
      ...both(pairs, ({ cpuMicrosecondsPerRequest }) => cpuMicrosecondsPerRequest),
      quartiles(pairs.map(cost)),
      ...both(pairs, ({ requestsPerSecond }) => requestsPerSecond),
      quartiles(pairs.map((pair) => pair.strongroom.requestsPerSecond / pair.openBao.requestsPerSecond)),
      ...percentiles(pairs),
    ])
  }
  const heads = ['OpenBao µs', 'Strongroom µs', 'cost ratio', 'OpenBao /s', 'Strongroom /s', 'rate ratio']
  return markdown(['request', ...heads, ...percentileHeads], rows)
}

async function compareChanges(options: Comparing): Promise<string> {
  const { openBao, strongroom, directory } = options
  const rows: string[][] = []
  for (const [title, { prepare }] of Object.entries(changes).filter(([title]) => options.wanted(title))) {
    for (const clients of [1, 16]) {
      const prepared = async () => ({
        openBao: clientsOf(openBao, await prepare(openBao, clients), clients, directory),
        strongroom: clientsOf(strongroom, await prepare(strongroom, clients), clients, directory),
      })
      // Warmed on keys of their own: a key that is rotated for so long has thousands of versions.
      const [warming, runs] = [await prepared(), await prepared()]
      const pairs = await pairsOf<Drive>(`${title}, ${clients} clients`, options, {
        warm: async (side) => 1 / (await warming[side](windowSeconds)).changesPerSecond,
        measure: (side) => runs[side](options.seconds),
      })
      rows.push([
        title,
        String(clients),
        ...both(pairs, ({ changesPerSecond }) => changesPerSecond),
        quartiles(pairs.map((pair) => pair.strongroom.changesPerSecond / pair.openBao.changesPerSecond)),
        ...percentiles(pairs),
      ])
    }
  }
  return markdown(['change', 'clients', 'OpenBao /s', 'Strongroom /s', 'rate ratio', ...percentileHeads], rows)
}

interface Sides<T> {
  /** @returns the cost of one window (warm.ts) */
  warm(side: keyof Pair<T>): Promise<number>
  measure(side: keyof Pair<T>): Promise<T>
}

async function pairsOf<T>(title: string, options: Comparing, sides: Sides<T>): Promise<Pair<T>[]> {
  const { measure } = sides
  for (const side of ['openBao', 'strongroom'] as const) await warm(() => sides.warm(side))
  const pairs: Pair<T>[] = []
  for (let pair = 1; pair <= options.pairs; pair++) {
    options.progress(`${title}: pair ${pair} of ${options.pairs}`)
    pairs.push({ openBao: await measure('openBao'), strongroom: await measure('strongroom') })
  }
  return pairs
}

const both = <T>(pairs: readonly Pair<T>[], value: (one: T) => number): string[] =>
  (['openBao', 'strongroom'] as const).map((side) => median(pairs.map((pair) => value(pair[side]))).toFixed(0))

function quartiles(ratios: readonly number[]): string {
  const { median: middle, lowerQuartile, upperQuartile } = spread(ratios)
  return `${middle.toFixed(2)} (${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)})`
}

const percentileHeads = ['OpenBao p50 / p99 ms', 'Strongroom p50 / p99 ms']

const percentiles = (pairs: readonly Pair<Pick<Load, 'p50Milliseconds' | 'p99Milliseconds'>>[]): string[] =>
  (['openBao', 'strongroom'] as const).map((side) =>
    [
      median(pairs.map((pair) => pair[side].p50Milliseconds)).toFixed(2),
      median(pairs.map((pair) => pair[side].p99Milliseconds)).toFixed(2),
    ].join(' / '),
  )
