import type { Clock } from '../clock.ts'
import type { Job } from '../engine.ts'
import type { Logger } from '../log.ts'
import type { Database } from '../store/database.ts'

export interface RunnerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
}

/** How much longer than its period a job may keep its lease: a holder that died is followed after this. */
const graceSeconds = 30
const lastMilliseconds = 10_000

/**
 * Background work. A leased job is done by one worker of the cluster at a time; a local task by every worker. What fails
 * is logged and tried again in its next turn.
 */
export class Runner implements AsyncDisposable {
  readonly #options: RunnerOptions
  readonly #stop = new AbortController()
  readonly #running: Promise<void>[] = []
  readonly #last: Job[] = []

  constructor(options: RunnerOptions) {
    this.#options = options
  }

  /** Done by whoever holds the lease of its name; with `atEnd` once more when this worker ends. */
  lead(job: Job, { atEnd = false } = {}): void {
    this.each(job.name, job.everySeconds, (signal) => this.#lead(job, signal))
    if (atEnd) this.#last.push(job)
  }

  /** Done here, whoever else does it. */
  each(name: string, everySeconds: number, work: (signal: AbortSignal) => Promise<void>): void {
    const { signal } = this.#stop
    const loop = async (): Promise<void> => {
      while (await this.#pause(everySeconds)) {
        await this.#attempt(name, () => work(signal))
      }
    }
    this.#running.push(loop())
  }

  async #lead(job: Job, signal: AbortSignal): Promise<void> {
    const lease = await this.#options.database.jobLease(job.name, job.everySeconds + graceSeconds)
    if (lease) await job.run(signal, lease.fence)
  }

  /** Workers that end at the same time do it one after the other: the last one's is the one that counts. */
  async #finish(job: Job): Promise<void> {
    const { database, clock } = this.#options
    const signal = AbortSignal.timeout(lastMilliseconds)
    while (!signal.aborted) {
      const lease = await database.jobLease(`${job.name}, at the end`, graceSeconds)
      if (lease) return job.run(signal, lease.fence).finally(() => lease.release())
      await clock.sleep(100)
    }
  }

  async #attempt(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#options.log.warn({ err: error, job: name }, 'a background job failed')
    }
  }

  async #pause(seconds: number): Promise<boolean> {
    const { signal } = this.#stop
    await this.#options.clock.sleep(seconds * 1000, signal).catch(() => undefined)
    return !signal.aborted
  }

  /** Ends when what is running has ended, and what is to be done last is done. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#running)
    for (const job of this.#last) await this.#attempt(job.name, () => this.#finish(job))
  }
}
