import { merge, type Snapshot, totals } from '../metrics/snapshot.ts'
import type { Recipient } from './messages.ts'

interface Round<P> {
  readonly requester: P
  readonly sequence: number
  /** Workers that have not answered yet. */
  readonly pending: Set<P>
  readonly snapshots: Snapshot[]
  readonly timer: NodeJS.Timeout
}

/** A worker whose event loop is busy for longer is left out of the answer, which says so. */
const patienceMilliseconds = 1000

/**
 * Fetches the metrics of every worker for the one that was asked for the node's. Workers that have ended, or do not
 * answer, count with their last totals, so that the node's never shrink while this process lives.
 */
export class Gathering<P extends Recipient> {
  readonly #rounds = new Map<number, Round<P>>()
  readonly #latest = new Map<P, Snapshot>()
  #departed: Snapshot = []
  #sequence = 0

  /** @param workers all that may have metrics, including the requester */
  request(requester: P, workers: readonly P[]): void {
    const sequence = ++this.#sequence
    const timer = setTimeout(() => this.#end(round), patienceMilliseconds)
    const round: Round<P> = { requester, sequence, pending: new Set(workers), snapshots: [], timer }
    this.#rounds.set(sequence, round)
    for (const worker of workers) worker.send({ type: 'measure', sequence })
    this.#settle(round)
  }

  /** A worker has answered. */
  measured(worker: P, sequence: number, snapshot: Snapshot): void {
    this.#latest.set(worker, snapshot)
    const round = this.#rounds.get(sequence)
    if (!round?.pending.delete(worker)) return
    round.snapshots.push(snapshot)
    this.#settle(round)
  }

  /** A process has ended. */
  gone(worker: P): void {
    const last = this.#latest.get(worker)
    this.#latest.delete(worker)
    if (last) this.#departed = merge([this.#departed, totals(last)])
    for (const round of this.#rounds.values()) {
      if (round.pending.delete(worker)) this.#settle(round)
    }
  }

  #settle(round: Round<P>): void {
    if (round.pending.size === 0) this.#end(round)
  }

  #end({ requester, sequence, pending, snapshots, timer }: Round<P>): void {
    clearTimeout(timer)
    this.#rounds.delete(sequence)
    const before = [...pending].map((worker) => totals(this.#latest.get(worker) ?? []))
    const gathered = { snapshots: [this.#departed, ...before, ...snapshots], missing: pending.size }
    requester.send({ type: 'gathered', gathered })
  }
}
