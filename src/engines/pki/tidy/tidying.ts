import type { Job } from '../../../job.ts'
import { pages } from '../../../store/pages.ts'
import { jobOfSite } from '../site.ts'
import type { TidyDeps } from './deps.ts'
import { TidyGauges } from './gauges.ts'
import { TidyWork } from './run.ts'
import { TidyRuns } from './runs.ts'
import type { AutoTidy, TidyOrder } from './settings.ts'
import { automatic, isActive, type TidyRun } from './tables.ts'

const mountsAtOnce = 200
/** Runs of one worker at a time: further ones wait. */
const runsAtOnce = 16
/** Attempts to start a run: a worker that has just ended one of the mount may still hold the lease. */
const attempts = 10
const attemptMilliseconds = 200

/**
 * Tidies the mounts of this site, on request and automatically: one run of a mount at a time, on any of its workers.
 */
export class Tidying {
  /** The runs of this site, as stored; each is a job of its own. */
  readonly runs: TidyRuns
  /** Begins automatic runs that are due, and continues runs whose worker has ended. */
  readonly upkeep: Job
  readonly #deps: TidyDeps
  readonly #work: TidyWork
  readonly #gauges: TidyGauges
  #running = 0

  constructor(deps: TidyDeps) {
    this.#deps = deps
    this.runs = new TidyRuns(deps)
    this.#work = new TidyWork(deps, this.runs)
    this.#gauges = new TidyGauges(deps)
    this.upkeep = {
      name: jobOfSite('tidy', deps.site),
      everySeconds: 60,
      run: (signal) => this.#upkeep(signal),
    }
  }

  /**
   * Begins a run in the background. When this resolves it is recorded: it will be done even if this worker ends.
   * @returns undefined while another run of the mount is under way
   */
  async begin(mount: string, order: TidyOrder): Promise<TidyRun | undefined> {
    const run = await this.runs.begin(mount, order, false)
    if (run !== undefined) {
      void this.#launch(mount).catch((error: unknown) => {
        this.#deps.log.warn({ err: error, mount }, 'a tidy run could not be started now; it begins within a minute')
      })
    }
    return run
  }

  /** Starts the job of a run. If its lease stays taken, or this fails, the upkeep finds the run. */
  async #launch(mount: string): Promise<void> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      if (await this.#deps.start(this.#jobOf(mount))) return
      await this.#deps.clock.sleep(attemptMilliseconds)
    }
  }

  #jobOf(mount: string): Job {
    const name = jobOfSite(`tidy of mount ${mount}`, this.#deps.site)
    return {
      name,
      everySeconds: 60,
      run: async (signal, fence) => {
        this.#running++
        try {
          const onProgress = (run: TidyRun) => this.#gauges.show(mount, run)
          const ended = await this.#work.goOn(mount, { job: name, fence }, signal, onProgress)
          if (ended !== undefined) this.#gauges.ended(ended)
        } finally {
          this.#gauges.hide(mount)
          this.#running--
        }
      },
    }
  }

  async #upkeep(signal: AbortSignal): Promise<void> {
    for (const mount of await this.runs.active()) {
      if (await this.#busy(signal)) return
      await this.#deps.start(this.#jobOf(mount))
    }
    const { database } = this.#deps
    for await (const page of pages(database, database.unverified(automatic), {}, { by: 'id', limit: mountsAtOnce })) {
      for (const { mount, tidy } of page) {
        if (tidy === null) continue
        if (await this.#busy(signal)) return
        await this.#beginDue(mount).catch((error: unknown) => {
          this.#deps.log.warn({ err: error, mount }, 'automatic tidying could not be started')
        })
      }
    }
  }

  async #beginDue(mount: string): Promise<void> {
    const { tidy } = (await this.#deps.authorities.of({ uuid: mount })).settings
    if (!tidy?.enabled) return
    const last = await this.runs.find(mount)
    if (last !== undefined && isActive(last)) return
    const due = (last?.finishedAt ?? 0) + tidy.intervalDuration * 1000
    if (due > this.#deps.clock.wall()) return
    if (await this.runs.begin(mount, orderOf(tidy), true)) await this.#launch(mount)
  }

  /** Waits while the maximum of runs is under way here. @returns whether this worker is stopping */
  async #busy(signal: AbortSignal): Promise<boolean> {
    while (this.#running >= runsAtOnce && !signal.aborted)
      await this.#deps.clock.sleep(attemptMilliseconds, signal).catch(() => undefined)
    return signal.aborted
  }
}

/** The order of an automatic run: the settings without those of its schedule and of counts. */
function orderOf(tidy: AutoTidy): TidyOrder {
  const { enabled, intervalDuration, maintainStoredCertificateCounts, publishStoredCertificateCountMetrics, ...order } =
    tidy
  return order
}
