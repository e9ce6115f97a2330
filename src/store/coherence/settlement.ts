import type { Clock } from '../../clock.ts'
import type { Logger } from '../../log.ts'
import { isPassing } from '../faults.ts'
import type { LeaseTimes } from './coherence.ts'
import type { Versions } from './increments.ts'
import type { Look } from './look.ts'
import type { Registry } from './registry.ts'

/** A writer that waits between its COMMIT and its answer. */
interface Wait {
  readonly began: number
  readonly groups: Versions['groups']
  /** The shared log that has the versions. */
  readonly log: string | undefined
  /** Registrations that may still use the replaced values; undefined before the first look. */
  open: Set<string> | undefined
  timer: NodeJS.Timeout
  /** When a look is worth while, by the monotonic clock. */
  due: number
  looks: number
  readonly end: () => void
}

/** The process that waits. */
interface OwnWorker {
  /** It has learned the versions before the wait begins. */
  readonly registration: string | undefined
  readonly longestLeaseMilliseconds: number
}

const longestPauseMilliseconds = 20
/** The first look comes when this share of the usual time is over, the next ones whenever a quarter has been added. */
const firstLook = 0.8
const nextLook = 0.25
/** After a first look that was late enough the next one comes earlier. */
const earlier = 0.9

/**
 * The waits of writers after their COMMITs: until every registration of a later look has acknowledged, or until the
 * cache entries of the silent ones have expired. All writers of a process share the looks. Nothing fails here: without
 * an answer to its looks a writer waits for its timer.
 */
export class Settlement {
  readonly #registry: Registry
  readonly #clock: Clock
  readonly #log: Logger
  readonly #times: LeaseTimes
  readonly #own: OwnWorker
  readonly #waits = new Set<Wait>()
  /** How long rows take to come, lately; a silent worker makes it no longer than a pause. */
  #usualMilliseconds = 1
  #looking = false
  #wake: (() => void) | undefined

  constructor(options: {
    registry: Registry
    clock: Clock
    log: Logger
    times: LeaseTimes
    own: OwnWorker
  }) {
    this.#registry = options.registry
    this.#clock = options.clock
    this.#log = options.log
    this.#times = options.times
    this.#own = options.own
  }

  /**
   * Resolves when no worker can use the values these versions replaced; call it when the COMMIT has returned.
   * @param look one that followed the COMMIT on the same connection
   * @param log the shared log that has these versions: its readers see them before each use of their caches
   */
  async settled({ groups }: Versions, look?: Look, log?: string): Promise<void> {
    const { promise, resolve: end } = Promise.withResolvers<void>()
    const began = this.#clock.monotonic()
    const wait: Wait = {
      began,
      looks: 0,
      due: look ? began + Math.max(1, firstLook * this.#usualMilliseconds) : began,
      groups,
      log,
      open: undefined,
      timer: setTimeout(() => this.#giveUp(wait), this.#patience(0)),
      end,
    }
    this.#waits.add(wait)
    if (look) this.#compare(wait, look)
    if (!this.#waits.has(wait)) return
    // It may be due before those that are waited for now.
    this.#wake?.()
    void this.#look()
    await promise
    const taken = Math.min(this.#clock.monotonic() - began, longestPauseMilliseconds)
    if (wait.looks > 1) this.#usualMilliseconds += (taken - this.#usualMilliseconds) / 8
    else this.#usualMilliseconds *= earlier
  }

  /**
   * Resolves when everything that any worker had cached before has expired: for a writer that does not know its
   * versions.
   */
  outlast(): Promise<void> {
    return this.#clock.sleep(this.#patience(0))
  }

  #patience(leaseMilliseconds: number): number {
    return Math.max(leaseMilliseconds, this.#own.longestLeaseMilliseconds) + this.#times.marginMilliseconds
  }

  async #look(): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    while (this.#waits.size > 0) {
      const due = [...this.#waits].reduce((first, wait) => Math.min(first, wait.due), Number.POSITIVE_INFINITY)
      const pause = due - this.#clock.monotonic()
      if (pause > 0) {
        await this.#pause(pause)
        continue
      }
      const began = this.#clock.monotonic()
      const look = await this.#tryLook()
      const now = this.#clock.monotonic()
      for (const wait of this.#waits) {
        if (wait.began > began) continue
        wait.looks++
        wait.due = now + Math.min(Math.max(1, nextLook * (now - wait.began)), longestPauseMilliseconds)
        if (look) this.#compare(wait, look)
      }
    }
    this.#looking = false
  }

  async #tryLook(): Promise<Look | undefined> {
    const groups = new Set([...this.#waits].flatMap((wait) => wait.groups.map(([group]) => group)))
    try {
      return await this.#registry.look([...groups])
    } catch (error) {
      if (!isPassing(error)) this.#log.warn({ err: error }, 'registrations could not be read')
      return undefined
    }
  }

  /** Waits, but not past the arrival of another writer. */
  async #pause(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, milliseconds)
    this.#wake = resolve
    await promise
    clearTimeout(timer)
    this.#wake = undefined
  }

  #compare(wait: Wait, look: Look): void {
    const longer = wait.open === undefined && look.leaseMilliseconds > this.#own.longestLeaseMilliseconds
    wait.open ??= new Set(look.registrations.keys())
    const logs = this.#informed(wait, look)
    for (const registration of wait.open) {
      const log = look.registrations.get(registration)
      const acknowledged =
        (log !== undefined && logs.has(log)) ||
        registration === this.#own.registration ||
        covers(look.acknowledged.get(registration), wait.groups)
      if (acknowledged || !look.registrations.has(registration)) wait.open.delete(registration)
    }
    if (longer && wait.open.size > 0) this.#prolong(wait, look.leaseMilliseconds)
    this.#check(wait)
  }

  /** The logs that have the versions: one who acknowledges them has written them to its log before. */
  #informed({ log, groups }: Wait, look: Look): ReadonlySet<string> {
    const logs = new Set(log === undefined ? [] : [log])
    for (const [registration, rows] of look.acknowledged) {
      const its = look.registrations.get(registration)
      if (its !== undefined && covers(rows, groups)) logs.add(its)
    }
    return logs
  }

  /** A worker has a longer lease than this one. */
  #prolong(wait: Wait, leaseMilliseconds: number): void {
    clearTimeout(wait.timer)
    const left = wait.began + this.#patience(leaseMilliseconds) - this.#clock.monotonic()
    wait.timer = setTimeout(() => this.#giveUp(wait), Math.max(0, left))
  }

  #check(wait: Wait): void {
    if (wait.open?.size !== 0) return
    clearTimeout(wait.timer)
    this.#waits.delete(wait)
    wait.end()
  }

  /** Condemns silent registrations, so that writers stop waiting for them soon. */
  #giveUp(wait: Wait): void {
    this.#waits.delete(wait)
    wait.end()
    const late = [...(wait.open ?? [])]
    if (late.length === 0) return
    this.#log.warn({ registrations: late }, 'workers did not acknowledge a change in time')
    this.#registry.condemn(late).catch((error: unknown) => {
      this.#log.warn({ err: error }, 'silent registrations could not be condemned')
    })
  }
}

const covers = (rows: ReadonlyMap<number, number> | undefined, groups: Versions['groups']): boolean =>
  groups.every(([group, v]) => (rows?.get(group) ?? -1) >= v)
