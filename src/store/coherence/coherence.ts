import type { Clock } from '../../clock.ts'
import type { Logger } from '../../log.ts'
import type { Counter } from '../../metrics.ts'
import { Conflict } from '../faults.ts'
import { persist } from '../pool/retry.ts'
import { bucketCount } from './buckets.ts'
import { Known } from './known.ts'
import type { Registry } from './registry.ts'

/** L, the margin that writers and undertakers add to it, and the pause between polls. */
export interface LeaseTimes {
  readonly leaseMilliseconds: number
  readonly marginMilliseconds: number
  readonly pollMilliseconds: number
}

export interface CoherenceOptions {
  readonly registry: Registry
  readonly clock: Clock
  readonly log: Logger
  readonly incarnation: string
  readonly times: LeaseTimes
  /** Drops every cache entry. */
  readonly drop: () => void
  readonly polls: Counter
  readonly failedPolls: Counter
}

const freshMilliseconds = 3000

/**
 * A worker's side of the protocol (docs/coherence.md): it registers before anything is cached, polls, acknowledges,
 * and when it was condemned it drops everything and registers anew.
 */
export class Coherence {
  readonly known: Known
  readonly #options: CoherenceOptions
  readonly #acknowledged = new Float64Array(bucketCount)
  #registration: string | undefined
  #sum = ''
  #polling: Promise<void> | undefined
  #running = false
  #loop: Promise<void> | undefined
  #failing = false
  #nudged = false
  #wake: (() => void) | undefined

  constructor(options: CoherenceOptions) {
    this.#options = options
    this.known = new Known(options.clock, options.times.leaseMilliseconds)
  }

  /** Whether caches may hold anything at all. */
  get running(): boolean {
    return this.#running
  }

  /** Registers, and polls from now on. */
  async start(): Promise<void> {
    await this.#register()
    this.#running = true
    this.#loop = this.#run()
    await this.refresh()
  }

  /** Polls at once: somebody has committed. */
  nudged(): void {
    this.#nudged = true
    this.#wake?.()
  }

  /** Polls until the known versions may be relied on. ApiError 503 when the database does not answer. */
  refresh(): Promise<void> {
    return persist(this.#options.clock, freshMilliseconds, async () => {
      if (this.known.fresh()) return
      await this.#poll()
      if (!this.known.fresh()) throw new Conflict()
    })
  }

  async #run(): Promise<void> {
    while (this.#running) {
      this.#nudged = false
      await this.#poll().then(
        () => this.#report(undefined),
        (error: unknown) => this.#report(error),
      )
      await this.#pause()
    }
  }

  /** Says it once when polls begin to fail, and once when they succeed again. */
  #report(error: unknown): void {
    const failing = error !== undefined
    if (failing === this.#failing) return
    this.#failing = failing
    if (failing) this.#options.log.warn({ err: error }, 'the versions cannot be read: caches stop serving')
    else this.#options.log.info('the versions are read again: caches serve')
  }

  async #pause(): Promise<void> {
    if (this.#nudged || !this.#running) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#options.times.pollMilliseconds)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = undefined
  }

  #poll(): Promise<void> {
    this.#polling ??= this.#counted().finally(() => {
      this.#polling = undefined
    })
    return this.#polling
  }

  async #counted(): Promise<void> {
    this.#options.polls.value++
    try {
      await this.#pollOnce()
    } catch (error) {
      this.#options.failedPolls.value++
      throw error
    }
  }

  async #pollOnce(): Promise<void> {
    const { registry } = this.#options
    const registration = this.#registration
    const began = this.known.now()
    const sight = registration === undefined ? undefined : await registry.look(registration)
    if (registration === undefined || !sight?.registered) return this.#register()
    if (sight.sum !== this.#sum) {
      if (!this.known.learn(await registry.versions())) return this.#register()
      this.#sum = sight.sum
    }
    this.known.confirm(began)
    await this.#acknowledge(registration)
  }

  async #acknowledge(registration: string): Promise<void> {
    const news: [bucket: number, v: number][] = []
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      const v = this.known.at(bucket)
      if (v !== this.#acknowledged[bucket]) news.push([bucket, v])
    }
    if (news.length === 0) return
    await this.#options.registry.acknowledge(registration, news)
    for (const [bucket, v] of news) this.#acknowledged[bucket] = v
  }

  /** Nothing cached under an older registration is used again: the caches go first. */
  async #register(): Promise<void> {
    const { registry, incarnation } = this.#options
    const old = this.#forget()
    this.#registration = await registry.register(incarnation)
    this.#nudged = true
    if (old !== undefined) await registry.remove([old])
  }

  #forget(): string | undefined {
    const old = this.#registration
    this.#registration = undefined
    this.known.forget()
    this.#options.drop()
    this.#sum = ''
    this.#acknowledged.fill(-1)
    return old
  }

  /** Stops polling, drops the caches and deletes the registration, so that no writer waits for this worker. */
  async stop(): Promise<void> {
    if (!this.#running) return
    this.#running = false
    this.#wake?.()
    await this.#loop
    await this.#polling?.catch(() => undefined)
    const old = this.#forget()
    if (old !== undefined) await this.#options.registry.remove([old])
  }
}
