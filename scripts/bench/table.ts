import type { Load } from './load.ts'
import type { Pair } from './measure.ts'
import type { Row } from './rows.ts'
import { median, spread } from './statistics.ts'

const heads = [
  'operation',
  'raw call µs',
  'minimal server µs',
  'Strongroom µs',
  'cost ratio (quartiles)',
  'of raw rate: CPU',
  'end to end',
  'minimal requests/s',
  'Strongroom requests/s',
  'minimal p50 / p99 ms',
  'Strongroom p50 / p99 ms',
]

/**
 * Markdown: medians over the pairs; µs are CPU of all processes of a server, for one request. Strongroom's part of the
 * raw rate is told in items for each second of CPU, and for each second of the clock, in which several cores may have
 * worked.
 */
export function table(results: readonly { row: Row; pairs: readonly Pair[] }[]): string {
  return markdown(
    heads,
    results.map(({ row, pairs }) => cells(row, pairs)),
  )
}

/** A table of Markdown whose columns line up; the first is flush left. */
export function markdown(heads: readonly string[], body: readonly (readonly string[])[]): string {
  const rows = [heads, ...body]
  const widths = heads.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`
  const rule = `|${widths.map((width, column) => (column === 0 ? `:${'-'.repeat(width + 1)}` : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  return [line(heads), rule, ...body.map(line)].join('\n')
}

function cells({ title, items }: Row, pairs: readonly Pair[]): string[] {
  const over = (value: (pair: Pair) => number): number => median(pairs.map(value))
  const latency = (side: (pair: Pair) => Load): string =>
    `${over((pair) => side(pair).p50Milliseconds).toFixed(2)} / ${over((pair) => side(pair).p99Milliseconds).toFixed(2)}`
  const cost = (side: (pair: Pair) => Load): string => over((pair) => side(pair).cpuMicrosecondsPerRequest).toFixed(1)
  const rate = (side: (pair: Pair) => Load): string => over((pair) => side(pair).requestsPerSecond).toFixed(0)
  const ratios = spread(
    pairs.map(({ minimal, strongroom }) => strongroom.cpuMicrosecondsPerRequest / minimal.cpuMicrosecondsPerRequest),
  )
  const raw = pairs.flatMap(({ rawMicroseconds }) => rawMicroseconds ?? [])
  const percent = (itemMicroseconds: (strongroom: Load) => number): string => {
    const share = ({ rawMicroseconds = Number.NaN, strongroom }: Pair) => rawMicroseconds / itemMicroseconds(strongroom)
    return raw.length === 0 ? '–' : `${(100 * over(share)).toFixed(0)} %`
  }
  return [
    title,
    raw.length === 0 ? '–' : median(raw).toFixed(1),
    cost(({ minimal }) => minimal),
    cost(({ strongroom }) => strongroom),
    `${ratios.median.toFixed(2)} (${ratios.lowerQuartile.toFixed(2)}–${ratios.upperQuartile.toFixed(2)})`,
    percent(({ cpuMicrosecondsPerRequest }) => cpuMicrosecondsPerRequest / items),
    percent(({ requestsPerSecond }) => 1e6 / requestsPerSecond / items),
    rate(({ minimal }) => minimal),
    rate(({ strongroom }) => strongroom),
    latency(({ minimal }) => minimal),
    latency(({ strongroom }) => strongroom),
  ]
}
