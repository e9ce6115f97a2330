import { isUnavailable } from './errors.ts'
import { residentBytes } from './metrics/resident.ts'
import type { Labels, Series, Snapshot } from './metrics/snapshot.ts'
import { Timing } from './metrics/timing.ts'
import type { MaybePromise } from './route.ts'

/** A number that only grows; its owner adds to it directly. */
export interface Counter {
  value: number
}

/** `name` is given if one declaration has several names, such as one for each mount. */
type Readings = readonly { readonly labels: Labels; readonly value: number; readonly name?: string }[]

interface Described<T> {
  readonly name: string
  readonly help: string
  readonly labels: Labels
  readonly source: T
}

/**
 * The metrics of one worker. A name is either Vault's, with dots (`vault.core.handle_request`), or begins with
 * `strongroom.`. Counters and timings are fetched once and then used without a look-up: they cost a hot path a few
 * nanoseconds. The same name and labels always return the same object, so that components rebuilt when a node is
 * unsealed continue counting.
 */
export class Metrics {
  readonly #counters = new Map<string, Described<Counter>>()
  readonly #timings = new Map<string, Described<Timing>>()
  readonly #gauges = new Map<string, Described<() => number>>()
  readonly #shared = new Map<string, Described<() => MaybePromise<Readings>>>()

  constructor() {
    const labels = { worker: String(process.pid) }
    this.gauge('strongroom.worker.resident_memory_bytes', 'Resident memory of a worker.', residentBytes, labels)
  }

  /** Summed over the workers of a node, including ended ones. */
  counter(name: string, help: string, labels: Labels = {}): Counter {
    return made(this.#counters, { name, help, labels, source: { value: 0 } })
  }

  /** Milliseconds; merged over the workers of a node. */
  timing(name: string, help: string, labels: Labels = {}): Timing {
    return made(this.#timings, { name, help, labels, source: new Timing() })
  }

  /** A timing that nothing observes any more is shown no longer. */
  forgetTiming(name: string, labels: Labels = {}): void {
    this.#timings.delete(keyOf(name, labels))
  }

  /** A number that is read on demand, summed over the workers of a node. A second declaration replaces the first. */
  gauge(name: string, help: string, read: () => number, labels: Labels = {}): void {
    this.#gauges.set(keyOf(name, labels), { name, help, labels, source: read })
  }

  /** Numbers of the node or the cluster, which one worker reports for all. */
  shared(name: string, help: string, read: () => MaybePromise<Readings>): void {
    this.#shared.set(name, { name, help, labels: {}, source: read })
  }

  /** The metrics of this worker alone. */
  snapshot(): Snapshot {
    return [
      ...described(this.#counters, ({ value }) => ({ kind: 'counter', value })),
      ...described(this.#gauges, (read) => ({ kind: 'gauge', value: read() })),
      ...described(this.#timings, (timing) => ({ kind: 'timing', timing: timing.state() })),
    ]
  }

  /**
   * The shared numbers; one that cannot be read now is left out.
   * @param failed is told of each that could not be read, unless token or database are away: others say so
   */
  async sharedSnapshot(failed: (name: string, error: unknown) => void): Promise<Snapshot> {
    const read = async ({ name, help, source }: Described<() => MaybePromise<Readings>>): Promise<Series[]> => {
      try {
        const readings = await source()
        return readings.map(({ labels, value, name: own = name }) => ({
          name: own,
          help,
          labels,
          kind: 'gauge',
          value,
        }))
      } catch (error) {
        if (!isUnavailable(error)) failed(name, error)
        return []
      }
    }
    return (await Promise.all([...this.#shared.values()].map(read))).flat()
  }

  /** Starts a new period of the quantiles and forgets the oldest; called about every 30 s. */
  roll(): void {
    for (const { source } of this.#timings.values()) source.roll()
  }
}

const keyOf = (name: string, labels: Labels): string => name + JSON.stringify(labels)

function made<T>(table: Map<string, Described<T>>, wanted: Described<T>): T {
  const key = keyOf(wanted.name, wanted.labels)
  const known = table.get(key)
  if (known === undefined) table.set(key, wanted)
  return (known ?? wanted).source
}

type Kind = Series extends infer S ? (S extends Series ? Omit<S, 'name' | 'help' | 'labels'> : never) : never

const described = <T>(table: ReadonlyMap<string, Described<T>>, show: (source: T) => Kind): Series[] =>
  [...table.values()].map(({ name, help, labels, source }) => ({ name, help, labels, ...show(source) }))
