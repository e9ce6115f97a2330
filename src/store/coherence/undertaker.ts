import type { Clock } from '../../clock.ts'
import type { Logger } from '../../log.ts'
import type { Outcomes } from '../pool/outcomes.ts'
import type { Registry } from './registry.ts'

const roundMilliseconds = 1000
/** Rounds between two sweeps of old outcomes and stray acknowledgements. */
const sweepRounds = 60

/**
 * Removes registrations that were condemned, but none before `leaseMilliseconds` after it first saw it condemned, by
 * its own clock: until then the worker may be alive, and its cache in use. Every worker runs one.
 */
export class Undertaker {
  readonly #registry: Registry
  readonly #outcomes: Outcomes
  readonly #clock: Clock
  readonly #log: Logger
  readonly #graceMilliseconds: number
  readonly #firstSeen = new Map<string, number>()
  readonly #timer: NodeJS.Timeout
  #round = Math.floor(Math.random() * sweepRounds)
  #working: Promise<void> | undefined

  constructor(options: {
    registry: Registry
    outcomes: Outcomes
    clock: Clock
    log: Logger
    graceMilliseconds: number
  }) {
    this.#registry = options.registry
    this.#outcomes = options.outcomes
    this.#clock = options.clock
    this.#log = options.log
    this.#graceMilliseconds = options.graceMilliseconds
    this.#timer = setInterval(() => {
      this.#working ??= this.#work().finally(() => {
        this.#working = undefined
      })
    }, roundMilliseconds).unref()
  }

  async #work(): Promise<void> {
    try {
      await this.#bury()
      if (this.#round++ % sweepRounds !== 0) return
      await this.#registry.sweep()
      await this.#outcomes.purge()
    } catch (error) {
      this.#log.warn({ err: error }, 'old registrations and outcomes were not removed; trying again')
    }
  }

  async #bury(): Promise<void> {
    const condemned = await this.#registry.condemned()
    const now = this.#clock.monotonic()
    for (const id of this.#firstSeen.keys()) if (!condemned.includes(id)) this.#firstSeen.delete(id)
    for (const id of condemned) if (!this.#firstSeen.has(id)) this.#firstSeen.set(id, now)
    const due = condemned.filter((id) => now - (this.#firstSeen.get(id) ?? now) >= this.#graceMilliseconds)
    await this.#registry.remove(due)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#working
  }
}
