import { rest } from '../../../after.ts'
import { ApiError } from '../../../errors.ts'
import type { Claim } from '../../../job.ts'
import { DamagedRow, LeaseLost } from '../../../store/faults.ts'
import { crossClusterPart, queuePart } from './allsites.ts'
import { certStorePart } from './certstore.ts'
import type { TidyDeps } from './deps.ts'
import { expiredIssuersPart } from './issuers.ts'
import { type Part, type Place, wholly } from './part.ts'
import { EndedRevocations, rebuildsAlone, revokedPart } from './revoked.ts'
import type { TidyRuns } from './runs.ts'
import { isActive, type Step, steps, type TidyRun } from './tables.ts'

const noLegacyBundle = 'There is no legacy CA bundle: nothing was moved.'
/** Interval at which a pause checks whether the run was cancelled. */
const pauseMilliseconds = 5000

/** Does the steps of a run one after the other, a portion at a time, from the place it has reached. */
export class TidyWork {
  readonly #deps: TidyDeps
  readonly #runs: TidyRuns
  readonly #parts: Readonly<Record<Step, Part>>

  constructor(deps: TidyDeps, runs: TidyRuns) {
    this.#deps = deps
    this.#runs = runs
    const { lists } = deps
    const revocations = new EndedRevocations(deps)
    this.#parts = {
      certStore: certStorePart(deps),
      revokedCerts: revokedPart(deps, revocations),
      associations: wholly(async ({ mount, signal }) => {
        const { missing, fixed } = await lists.associate(mount, signal)
        return { counts: { missingIssuerCert: missing, fixedIssuers: fixed } }
      }),
      lists: wholly(async ({ mount }) => {
        if (!(await rebuildsAlone(deps, mount))) await lists.rebuild({ uuid: mount })
        return {}
      }),
      expiredIssuers: expiredIssuersPart(deps),
      legacyBundle: wholly(async () => ({ message: noLegacyBundle })),
      revocationQueue: queuePart(deps),
      crossClusterRevokedCerts: crossClusterPart(deps, revocations),
    }
  }

  /**
   * Continues the run of a mount until it ends.
   * @param onProgress called after every portion
   * @returns the run as it ended; undefined when it was interrupted and continues elsewhere or later
   */
  async goOn(
    mount: string,
    claim: Claim,
    signal: AbortSignal,
    onProgress: (run: TidyRun) => void,
  ): Promise<TidyRun | undefined> {
    const run = await this.#runs.find(mount)
    if (run === undefined || !isActive(run)) return undefined
    onProgress(run)
    try {
      const ended = await this.#steps(mount, run, { claim, signal, onProgress, left: new Map() })
      return ended?.state === 'Running' ? await this.#runs.finish(mount, run, claim) : ended
    } catch (error) {
      // The database or the token is away: another attempt continues from here.
      if (signal.aborted || error instanceof LeaseLost || isPassing(error)) return undefined
      this.#deps.log.error({ err: error, mount }, 'tidy failed')
      return this.#runs.finish(mount, run, claim, reasonOf(error))
    }
  }

  async #steps(mount: string, begun: TidyRun, watch: Watch): Promise<TidyRun | undefined> {
    let run = begun
    for (const step of steps.slice(steps.indexOf(begun.step))) {
      if (!isWanted(step, run)) continue
      for (let done = false; !done; ) {
        const began = this.#deps.clock.monotonic()
        ;({ run, done } = await this.#portion(mount, run, step, watch))
        watch.onProgress(run)
        if (run.state !== 'Running') return run
        await rest(this.#deps.clock, began)
        if (!done) run = await this.#pause(mount, run, step, watch.signal)
        if (watch.signal.aborted) return undefined
      }
    }
    return run
  }

  async #portion(mount: string, run: TidyRun, step: Step, { claim, signal, left }: Watch) {
    const here = run.step === step
    const place: Place = {
      ...{ mount, run, claim, signal, left, cursor: here ? run.cursor : null },
      ...{ checked: here ? run.checked : 0, total: here ? run.total : 0 },
    }
    const work = await this.#parts[step](place)
    let done = false
    const after = await this.#runs.advance(mount, run, claim, async (tx) => {
      const { done: ended, ...progress } = await work(tx)
      done = ended
      const { cursor, checked, total } = place
      return { cursor, checked, total, ...progress, step }
    })
    return { run: after, done }
  }

  /** Pauses between two certificates, if the order says so. */
  async #pause(mount: string, run: TidyRun, step: Step, signal: AbortSignal): Promise<TidyRun> {
    if (step === 'expiredIssuers') return run
    const { clock } = this.#deps
    const end = clock.monotonic() + run.order.pauseDuration * 1000
    for (let left = end - clock.monotonic(); left > 0 && !signal.aborted; left = end - clock.monotonic()) {
      await clock.sleep(Math.min(left, pauseMilliseconds), signal).catch(() => undefined)
      const now = await this.#runs.find(mount)
      if (now?.state !== 'Running') break
    }
    return run
  }
}

interface Watch {
  readonly claim: Claim
  readonly signal: AbortSignal
  readonly onProgress: (run: TidyRun) => void
  readonly left: Place['left']
}

/** The error in tidy-status; the log has the details. */
const reasonOf = (error: unknown): string =>
  error instanceof ApiError || error instanceof DamagedRow ? error.message : 'internal error'

const isPassing = (error: unknown): boolean => error instanceof ApiError && error.status === 503

function isWanted(step: Step, { order, counts }: TidyRun): boolean {
  switch (step) {
    case 'certStore':
      return order.certStore
    case 'revokedCerts':
      return order.revokedCerts
    case 'associations':
      return order.revokedCertIssuerAssociations
    case 'lists':
      return counts.revokedCertDeleted > 0 || order.revokedCertIssuerAssociations
    case 'expiredIssuers':
      return order.expiredIssuers
    case 'legacyBundle':
      return order.moveLegacyCaBundle
    case 'revocationQueue':
      return order.revocationQueue
    case 'crossClusterRevokedCerts':
      return order.crossClusterRevokedCerts
  }
}
