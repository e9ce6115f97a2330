import { merge, type Snapshot, totals } from '../metrics/snapshot.ts'
import type { Recipient } from './messages.ts'
import { Rounds } from './rounds.ts'

/**
 * Fetches the metrics of every worker for the one that reports the node's. Workers that have ended, or do not answer,
 * count with their last totals, so that the node's never shrink while this process lives.
 */
export class Gathering<P extends Recipient> {
  readonly #rounds = new Rounds<P, Snapshot>()
  readonly #latest = new Map<P, Snapshot>()
  #departed: Snapshot = []

  /**
   * @param workers all that may have metrics, including the requester
   * @param question its number among those of the requester
   */
  request(requester: P, workers: readonly P[], question?: number): void {
    const put = (worker: P, sequence: number): void => worker.send({ type: 'measure', sequence })
    this.#rounds.ask(workers, put, (snapshots, silent) => {
      const before = silent.map((worker) => totals(this.#latest.get(worker) ?? []))
      const gathered = { snapshots: [this.#departed, ...before, ...snapshots], missing: silent.length }
      requester.send({ type: 'gathered', gathered, question })
    })
  }

  /** A worker has answered. */
  measured(worker: P, sequence: number, snapshot: Snapshot): void {
    this.#latest.set(worker, snapshot)
    this.#rounds.answered(worker, sequence, snapshot)
  }

  /** A process has ended. */
  gone(worker: P): void {
    const last = this.#latest.get(worker)
    this.#latest.delete(worker)
    if (last) this.#departed = merge([this.#departed, totals(last)])
    this.#rounds.gone(worker)
  }
}
