import type { Clock } from '../clock.ts'
import type { Counter } from '../metrics.ts'
import type { MaybePromise } from '../route.ts'
import type { SettingSet, Settings } from '../settings/settings.ts'
import { isExempt, type QuotaConfig, quotaConfigOf } from './config.ts'
import { type Counted, counted, Meter, type Metered } from './meter.ts'
import { covers, rateLimits } from './ratelimit.ts'

export interface QuotasOptions {
  readonly settings: Settings
  readonly clock: Clock
  /** Processes of this node: each has its share of a rate. */
  readonly workers: number
  /** Counts refusals. */
  readonly violations: Counter
}

/** The quotas of one set of settings. */
interface Adopted {
  readonly set: SettingSet
  readonly config: QuotaConfig
  /** The longest path first. */
  readonly all: readonly Counted[]
}

/**
 * Rate-limit quotas. Each worker counts for itself, up to its share of the rate, so that a node never serves more than
 * the rate; of several quotas the one with the longest path counts.
 */
export class Quotas {
  readonly #options: QuotasOptions
  #adopted: Adopted | undefined

  constructor(options: QuotasOptions) {
    this.#options = options
  }

  /** The meter of a request; undefined if no quota covers its path. */
  meter(path: string, address: string, hasCredential: boolean): MaybePromise<Meter | undefined> {
    const set = this.#options.settings.current()
    if (set instanceof Promise) return set.then((loaded) => this.#meterIn(loaded, path, address, hasCredential))
    return this.#meterIn(set, path, address, hasCredential)
  }

  /** The same by the last known quotas, synchronously: for requests that are answered while the database is away. */
  meterNow(path: string, address: string, hasCredential: boolean): Meter | undefined {
    return this.#meterIn(this.#options.settings.latest(), path, address, hasCredential)
  }

  #meterIn(
    set: SettingSet,
    path: Metered['path'],
    address: Metered['address'],
    hasCredential: boolean,
  ): Meter | undefined {
    const { all, config } = this.#adopted?.set === set ? this.#adopted : this.#adopt(set)
    if (all.length === 0) return undefined
    const quota = all.find(({ limit }) => covers(limit, path))
    if (quota === undefined || isExempt(config, path)) return undefined
    const { clock, workers, violations } = this.#options
    return new Meter({ path, address, hasCredential }, { quota, config, clock, workers, violations })
  }

  /** A quota that has not changed keeps its counts. */
  #adopt(set: SettingSet): Adopted {
    const before = new Map(this.#adopted?.all.map((one) => [JSON.stringify(one.limit), one]))
    const all = rateLimits(set.get('rate-limit') ?? new Map())
      .toSorted((one, other) => other.path.length - one.path.length || (one.name < other.name ? -1 : 1))
      .map((limit) => before.get(JSON.stringify(limit)) ?? counted(limit))
    this.#adopted = { set, config: quotaConfigOf(set), all }
    return this.#adopted
  }
}
