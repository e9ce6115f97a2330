import type { Clock } from '../clock.ts'
import type { Job } from '../job.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { Database } from '../store/database.ts'
import type { JobLease } from '../store/lease.ts'
import { whileRenewed } from './renewal.ts'

export interface RunnerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: Metrics
  /** Time for which a job keeps its lease beyond its period; afterwards another worker succeeds a dead holder. */
  readonly graceSeconds?: number
}

const defaultGraceSeconds = 15
/** The longest time that an interrupted walk of a started job waits for another worker. */
const resumeEverySeconds = 60
const atEndMilliseconds = 10_000

/**
 * Background work. A leased job runs on one worker of the cluster at a time, which renews the lease while the job runs;
 * a local task runs on every worker. A failure is logged, and the job runs again in its next turn.
 */
export class Runner implements AsyncDisposable {
  readonly #options: RunnerOptions
  readonly #stop = new AbortController()
  readonly #running = new Set<Promise<void>>()
  /** Names of the jobs that `start` has begun here. */
  readonly #started = new Set<string>()
  /** Leases by the job's name; other workers may have taken some by now. */
  readonly #held = new Map<string, JobLease>()
  readonly #atEnd: Job[] = []

  constructor(options: RunnerOptions) {
    this.#options = options
  }

  /** Runs a job on the worker that holds the lease of its name; with `atEnd` also when this worker ends. */
  schedule(job: Job, { atEnd = false } = {}): void {
    this.scheduleLocal(job.name, job.everySeconds, () => this.#runLeased(job))
    if (atEnd) this.#atEnd.push(job)
  }

  /**
   * Runs a leased job once, now and in the background.
   * @returns false when it is already running
   */
  async start(job: Job): Promise<boolean> {
    if (this.#started.has(job.name)) return false
    this.#started.add(job.name)
    let work: Promise<void> | undefined
    try {
      const lease = await this.#options.database.jobLease(job.name, this.#graceSeconds)
      const run = async () => lease && this.#run(job, lease, this.#graceSeconds).finally(() => lease.release())
      work = lease && this.#tryRun(job.name, run)
    } finally {
      const ended = Promise.resolve(work).then(() => void this.#started.delete(job.name))
      this.#track(ended)
    }
    return work !== undefined
  }

  /** Starts a job again if it has stored a place because the worker that ran it ended. */
  resume(job: Job): void {
    this.scheduleLocal(`resume: ${job.name}`, Math.min(resumeEverySeconds, job.everySeconds), async () => {
      if ((await this.#options.database.jobPlace(job.name)) !== '') await this.start(job)
    })
  }

  /** Runs a task on this worker, whether or not others do. */
  scheduleLocal(name: string, everySeconds: number, work: (signal: AbortSignal) => Promise<void>): void {
    const { signal } = this.#stop
    const loop = async (): Promise<void> => {
      while (await this.#pause(everySeconds)) {
        await this.#tryRun(name, () => work(signal))
      }
    }
    this.#track(loop())
  }

  #track(work: Promise<void>): void {
    const kept = work.finally(() => this.#running.delete(kept))
    this.#running.add(kept)
  }

  get #graceSeconds(): number {
    return this.#options.graceSeconds ?? defaultGraceSeconds
  }

  async #runLeased(job: Job): Promise<void> {
    const ttlSeconds = job.everySeconds + this.#graceSeconds
    const lease = await this.#options.database.jobLease(job.name, ttlSeconds)
    if (lease === undefined) return
    this.#held.set(job.name, lease)
    await this.#run(job, lease, ttlSeconds)
  }

  #run(job: Job, lease: JobLease, ttlSeconds: number): Promise<void> {
    const held = { name: job.name, lease, ttlSeconds, clock: this.#options.clock }
    return whileRenewed(held, this.#stop.signal, (signal) => job.run(signal, lease.fence))
  }

  /** Workers that end at the same time take turns: the last run counts. */
  async #runAtEnd(job: Job): Promise<void> {
    const { database, clock } = this.#options
    const signal = AbortSignal.timeout(atEndMilliseconds)
    while (!signal.aborted) {
      const lease = await database.jobLease(`${job.name}, at the end`, this.#graceSeconds)
      if (lease) return job.run(signal, lease.fence).finally(() => lease.release())
      await clock.sleep(100)
    }
  }

  async #tryRun(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      const { log, metrics } = this.#options
      log.warn({ err: error, job: name }, 'a background job failed')
      const failures = metrics?.counter('strongroom.jobs.failures', 'Background jobs that failed.', { job: name })
      if (failures) failures.value++
    }
  }

  async #pause(seconds: number): Promise<boolean> {
    const { signal } = this.#stop
    await this.#options.clock.sleep(seconds * 1000, signal).catch(() => undefined)
    return !signal.aborted
  }

  /** Waits for running jobs, releases their leases to other workers, and runs the jobs scheduled for the end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#running)
    for (const [name, lease] of this.#held) await this.#tryRun(name, () => lease.release())
    for (const job of this.#atEnd) await this.#tryRun(job.name, () => this.#runAtEnd(job))
  }
}
