import type { Recipient } from './messages.ts'
import type { SealState } from './state.ts'

interface Follower extends Recipient {
  /** How many times a worker's patience: another supervisor waits for its own workers first. */
  readonly patience?: number
}

interface Round<P> {
  readonly sequence: number
  readonly sealed: boolean
  /** Of a seal that the disk did not take: a restart would end it. */
  readonly problem: string | undefined
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
 * from an unfinished one. Where the disk does not take the state, a seal is carried out all the same, and its
 * requesters are told; a node that cannot be unsealed durably stays sealed.
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

  /** @returns the reason for which the disk did not take the state */
  request(requester: P | undefined, sealed: boolean, workers: readonly P[], now: number): string | undefined {
    const problem = this.#write(sealed)
    if (!sealed && this.#state.sealed) {
      // The requester has logged in already, to see whether it can.
      requester?.send({ type: 'seal', sealed: true, sequence: ++this.#sequence })
      requester?.send({ type: 'sealDone', sealed: true, problem })
      return problem
    }
    const requesters = new Set(this.#round?.requesters)
    if (requester) requesters.add(requester)
    const first = workers.filter((worker) => worker === requester)
    const pending = [...first, ...workers.filter((worker) => worker !== requester)]
    this.#round = { sequence: ++this.#sequence, sealed, problem, requesters, pending, since: now }
    for (const worker of sealed ? pending : pending.slice(0, 1)) this.#order(this.#round, worker)
    this.#settle()
    return problem
  }

  #write(sealed: boolean): string | undefined {
    try {
      this.#state.set(sealed)
      return undefined
    } catch (error) {
      return (error as Error).message
    }
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
    const { sealed } = round
    const problem = sealed ? round.problem : undefined
    for (const requester of round.requesters) requester.send({ type: 'sealDone', sealed, problem })
  }
}
