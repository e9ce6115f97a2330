import type { Timing } from '../../../metrics/timing.ts'
import type { Counter } from '../../../metrics.ts'
import type { TidyDeps } from './deps.ts'
import { noCounts, type Step, type TidyCounts, type TidyRun } from './tables.ts'

const prefix = 'vault.secrets.pki.tidy'

/** The progress of this worker's runs and the results of its former ones, under Vault's names. */
export class TidyGauges {
  readonly #running = new Map<string, TidyRun>()
  /** Of the last run that looked for the issuers of revocations. */
  #associated: Pick<TidyCounts, 'missingIssuerCert' | 'fixedIssuers'> = noCounts
  readonly #duration: Timing
  readonly #certificates: Counter
  readonly #revoked: Counter
  readonly #success: Counter
  readonly #failure: Counter

  constructor({ metrics }: Pick<TidyDeps, 'metrics'>) {
    const of = (name: string, help: string) => metrics.counter(`${prefix}.${name}`, help)
    this.#duration = metrics.timing(`${prefix}.duration`, 'Milliseconds of a run of tidy.')
    this.#certificates = of('cert_store_deleted_count', 'Certificates that tidy has removed.')
    this.#revoked = of('revoked_cert_deleted_count', 'Revocations that tidy has removed.')
    this.#success = of('success', 'Runs of tidy that succeeded.')
    this.#failure = of('failure', 'Runs of tidy that failed.')
    this.#showProgress(metrics)
  }

  #showProgress(metrics: TidyDeps['metrics']): void {
    const worker = { worker: String(process.pid) }
    metrics.gauge(
      `${prefix}.start_time_epoch`,
      'Start of the oldest run under way; 0 for none.',
      () => this.#start(),
      worker,
    )
    const steps = [
      ['cert_store', 'certStore', 'stored certificates'],
      ['revoked_cert', 'revokedCerts', 'revocations'],
    ] as const
    for (const [name, step, what] of steps) {
      const gauge = (rest: string, help: string, read: (run: TidyRun) => number) =>
        metrics.gauge(`${prefix}.${name}_${rest}`, help, () => this.#sum(step, read))
      gauge('current_entry', `The number of ${what} that runs have checked.`, ({ checked }) => checked)
      gauge('total_entries', `The number of ${what} when runs began.`, ({ total }) => total)
      gauge('total_entries_remaining', `The number of ${what} not checked yet.`, ({ checked, total }) =>
        Math.max(0, total - checked),
      )
    }
    const lastly = (rest: string, help: string, read: () => number) =>
      metrics.gauge(
        `${prefix}.revoked_cert_entries_${rest}`,
        `${help} the last run that looked for issuers.`,
        read,
        worker,
      )
    lastly(
      'incorrect_issuers',
      'Revocations without an issuer that were found by',
      () => this.#associated.missingIssuerCert,
    )
    lastly('fixed_issuers', 'Revocations that were given their issuer by', () => this.#associated.fixedIssuers)
  }

  show(mount: string, run: TidyRun): void {
    const before = this.#running.get(mount)?.counts
    this.#running.set(mount, run)
    if (before === undefined) return
    this.#certificates.value += run.counts.certStoreDeleted - before.certStoreDeleted
    this.#revoked.value += run.counts.revokedCertDeleted - before.revokedCertDeleted
  }

  hide(mount: string): void {
    this.#running.delete(mount)
  }

  ended({ state, startedAt, finishedAt, order, counts }: TidyRun): void {
    if (order.revokedCertIssuerAssociations) this.#associated = { ...noCounts, ...counts }
    if (state === 'Cancelled') return
    const outcome = state === 'Error' ? this.#failure : this.#success
    outcome.value++
    this.#duration.observe((finishedAt ?? startedAt) - startedAt)
  }

  #start(): number {
    const starts = [...this.#running.values()].map(({ startedAt }) => Math.floor(startedAt / 1000))
    return starts.length === 0 ? 0 : Math.min(...starts)
  }

  #sum(step: Step, read: (run: TidyRun) => number): number {
    return [...this.#running.values()].filter((run) => run.step === step).reduce((sum, run) => sum + read(run), 0)
  }
}
