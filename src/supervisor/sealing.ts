import type { Recipient } from './messages.ts'
import type { SealState } from './state.ts'

interface Follower extends Recipient {
  /** How many times a worker's patience: another supervisor waits for its own workers first. */
  readonly patience?: number
}

interface Round<P> {
  readonly sequence: number
  readonly sealed: boolean
  readonly requesters: Set<P>
  /** Workers that have not followed yet, in order. */
  readonly pending: P[]
  readonly since: number
}

/** Time for a worker to drop its keys after the node was sealed. */
const patienceMilliseconds = 5000

/**
 * Carries a seal or unseal to every worker of the node and answers those that asked when all have followed or ended.
 * The state is on disk before the first worker hears of it, so that a replacement starts in it. Sealing goes to all at
 * once; unsealing to one after the other, so that a PIN changed meanwhile is tried once. A newer request takes over
 * from an unfinished one.
 */
export class Sealing<P extends Follower> {
  readonly #state: SealState
  #round: Round<P> | undefined
  #sequence = 0

  constructor(state: SealState) {
    this.#state = state
  }

  get unsealing(): boolean {
    return this.#round?.sealed === false
  }

  request(requester: P | undefined, sealed: boolean, workers: readonly P[], now: number): void {
    this.#state.set(sealed)
    const requesters = new Set(this.#round?.requesters)
    if (requester) requesters.add(requester)
    const first = workers.filter((worker) => worker === requester)
    const pending = [...first, ...workers.filter((worker) => worker !== requester)]
    this.#round = { sequence: ++this.#sequence, sealed, requesters, pending, since: now }
    for (const worker of sealed ? pending : pending.slice(0, 1)) this.#order(this.#round, worker)
    this.#settle()
  }

  followed(worker: P, sequence: number): void {
    if (this.#round?.sequence === sequence) this.#remove(this.#round, worker)
  }

  /** A process that has ended holds no key any more. */
  gone(worker: P): void {
    if (this.#round) this.#remove(this.#round, worker)
  }

  /** Workers that still hold their keys although the node was sealed a while ago: only killing them is left. */
  late(now: number): readonly P[] {
    const round = this.#round
    if (!round?.sealed) return []
    return round.pending.filter(({ patience = 1 }) => now - round.since > patience * patienceMilliseconds)
  }

  #order({ sealed, sequence }: Round<P>, worker: P): void {
    worker.send({ type: 'seal', sealed, sequence })
  }

  #remove(round: Round<P>, worker: P): void {
    const place = round.pending.indexOf(worker)
    if (place < 0) return
    round.pending.splice(place, 1)
    const next = round.pending[0]
    if (!round.sealed && place === 0 && next) this.#order(round, next)
    this.#settle()
  }

  #settle(): void {
    const round = this.#round
    if (round?.pending.length !== 0) return
    this.#round = undefined
    for (const requester of round.requesters) requester.send({ type: 'sealDone', sealed: round.sealed })
  }
}
