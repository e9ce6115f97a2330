import type { Clock } from '../../clock.ts'
import type { Logger } from '../../log.ts'
import type { Registry } from './registry.ts'

const roundMilliseconds = 1000

/**
 * Removes condemned registrations, each only when its lease and the margin have passed since this process first saw it
 * condemned, by its own clock: until then the worker may be alive and its cache in use. Every worker runs a reaper.
 */
export class Reaper {
  readonly #registry: Registry
  readonly #clock: Clock
  readonly #log: Logger
  readonly #marginMilliseconds: number
  readonly #firstSeen = new Map<string, number>()
  readonly #timer: NodeJS.Timeout
  #working: Promise<void> | undefined

  constructor(options: { registry: Registry; clock: Clock; log: Logger; marginMilliseconds: number }) {
    this.#registry = options.registry
    this.#clock = options.clock
    this.#log = options.log
    this.#marginMilliseconds = options.marginMilliseconds
    this.#timer = setInterval(() => {
      this.#working ??= this.#work().finally(() => {
        this.#working = undefined
      })
    }, roundMilliseconds).unref()
  }

  async #work(): Promise<void> {
    try {
      await this.#remove()
    } catch (error) {
      this.#log.warn({ err: error }, 'condemned registrations were not removed; trying again')
    }
  }

  async #remove(): Promise<void> {
    const condemned = new Map(
      (await this.#registry.condemned()).map(({ registration, leaseMilliseconds }) => [
        registration,
        leaseMilliseconds,
      ]),
    )
    const now = this.#clock.monotonic()
    for (const id of this.#firstSeen.keys()) if (!condemned.has(id)) this.#firstSeen.delete(id)
    for (const id of condemned.keys()) if (!this.#firstSeen.has(id)) this.#firstSeen.set(id, now)
    const due = [...condemned].filter(
      ([id, lease]) => now - (this.#firstSeen.get(id) ?? now) >= lease + this.#marginMilliseconds,
    )
    await this.#registry.remove(due.map(([id]) => id))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#working
  }
}
