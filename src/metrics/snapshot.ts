import { addTimings, type TimingState } from './timing.ts'

export type Labels = Readonly<Record<string, string>>

/** The current state of one series, in a form that crosses processes. */
export type Series = { readonly name: string; readonly help: string; readonly labels: Labels } & (
  | { readonly kind: 'counter'; readonly value: number }
  | { readonly kind: 'gauge'; readonly value: number }
  | { readonly kind: 'timing'; readonly timing: TimingState }
)

/** The metrics of one worker, or of several together. */
export type Snapshot = readonly Series[]

/** The metrics of the workers of a node. */
export interface WorkerSnapshots {
  readonly snapshots: readonly Snapshot[]
  /** Workers that did not answer in time: their numbers are missing. */
  readonly missing: number
}

/** The sum of snapshots: series of the same name and labels become one. */
export function merge(snapshots: readonly Snapshot[]): Snapshot {
  const merged = new Map<string, Series>()
  for (const series of snapshots.flat()) {
    const key = series.name + JSON.stringify(series.labels)
    const known = merged.get(key)
    merged.set(key, known === undefined ? series : add(known, series))
  }
  return [...merged.values()]
}

function add(one: Series, other: Series): Series {
  if (one.kind === 'timing' && other.kind === 'timing') return { ...one, timing: addTimings(one.timing, other.timing) }
  if (one.kind === 'timing' || other.kind === 'timing') throw new Error(`${one.name} is measured in two ways`)
  return { ...one, value: one.value + other.value }
}

/**
 * The totals of a worker that has ended: without them those of the node would shrink, and a reader would take that for
 * a restart.
 */
export const totals = (snapshot: Snapshot): Snapshot =>
  snapshot.flatMap((series): Series[] => {
    if (series.kind === 'gauge') return []
    if (series.kind === 'counter') return [series]
    return [{ ...series, timing: { ...series.timing, recentMilliseconds: 0, recent: [] } }]
  })
