import type { Clock } from '../../clock.ts'
import type { Logger } from '../../log.ts'
import type { Version } from '../../workload.ts'
import { isPassing } from '../faults.ts'
import type { LeaseTimes } from './coherence.ts'
import type { Versions } from './increments.ts'
import type { Look } from './look.ts'
import type { Registry } from './registry.ts'

/** A writer that waits between its COMMIT and its answer. */
interface Wait {
  readonly began: number
  readonly leaves: ReadonlyMap<number, number>
  readonly groups: readonly Version[]
  /** Leaves that registrations have reported as learned. */
  readonly heard: Map<string, Set<number>>
  /** Registrations that may still use the replaced values; undefined before the first look. */
  open: Set<string> | undefined
  timer: NodeJS.Timeout
  readonly end: () => void
}

/** The process that waits. */
interface OwnWorker {
  /** It has learned the versions before the wait begins. */
  readonly registration: string | undefined
  readonly longestLeaseMilliseconds: number
}

const longestPauseMilliseconds = 20

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
   */
  async settled({ leaves, groups }: Versions, look?: Look): Promise<void> {
    const { promise, resolve: end } = Promise.withResolvers<void>()
    const wait: Wait = {
      began: this.#clock.monotonic(),
      leaves: new Map(leaves),
      groups,
      heard: new Map(),
      open: undefined,
      timer: setTimeout(() => this.#giveUp(wait), this.#patience(0)),
      end,
    }
    this.#waits.add(wait)
    if (look) this.#compare(wait, look)
    else this.#wake?.()
    void this.#look()
    await promise
  }

  /**
   * Resolves when everything that any worker had cached before has expired: for a writer that does not know its
   * versions.
   */
  outlast(): Promise<void> {
    return this.#clock.sleep(this.#patience(0))
  }

  /** A worker of this node has reported that it learned these versions. */
  heard(registration: string, leaves: readonly Version[]): void {
    for (const wait of this.#waits) {
      const said = wait.heard.get(registration) ?? new Set()
      for (const [leaf, v] of leaves) if (v >= (wait.leaves.get(leaf) ?? Number.POSITIVE_INFINITY)) said.add(leaf)
      wait.heard.set(registration, said)
      if (said.size === wait.leaves.size && wait.open?.delete(registration)) this.#check(wait)
    }
  }

  #patience(leaseMilliseconds: number): number {
    return Math.max(leaseMilliseconds, this.#own.longestLeaseMilliseconds) + this.#times.marginMilliseconds
  }

  async #look(): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    let pause = 1
    let unanswered = false
    while (this.#waits.size > 0) {
      if (unanswered || [...this.#waits].every(({ open }) => open !== undefined)) {
        await this.#pause(pause)
        if (this.#waits.size === 0) break
        pause = Math.min(1.25 * pause, longestPauseMilliseconds)
      }
      const began = this.#clock.monotonic()
      const look = await this.#tryLook()
      unanswered = look === undefined
      for (const wait of this.#waits) if (look && wait.began <= began) this.#compare(wait, look)
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

  /** Waits, but not past the arrival of the next writer. */
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
    wait.open ??= new Set(look.registrations)
    for (const registration of wait.open) {
      const rows = look.acknowledged.get(registration)
      const said = wait.heard.get(registration)?.size === wait.leaves.size
      const acknowledged =
        said ||
        registration === this.#own.registration ||
        wait.groups.every(([group, v]) => (rows?.get(group) ?? -1) >= v)
      if (acknowledged || !look.registrations.has(registration)) wait.open.delete(registration)
    }
    if (longer && wait.open.size > 0) this.#prolong(wait, look.leaseMilliseconds)
    this.#check(wait)
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
