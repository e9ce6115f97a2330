interface Round<P, T> {
  /** Workers that have not answered yet. */
  readonly pending: Set<P>
  readonly answers: Map<P, T>
  readonly timer: NodeJS.Timeout
  end(answers: readonly T[], silent: readonly P[]): void
}

/** A worker whose event loop is busy for longer is left out of the answer. */
const patienceMilliseconds = 1000

/** Questions that a node's workers answer together. A worker that has ended, or is silent for a second, is left out. */
export class Rounds<P, T> {
  readonly #rounds = new Map<number, Round<P, T>>()
  #sequence = 0

  /**
   * Asks every worker once.
   * @param put sends the question, whose answer repeats the sequence number
   * @param end receives the answers of the workers that are still there, and those workers that did not answer
   */
  ask(workers: readonly P[], put: (worker: P, sequence: number) => void, end: Round<P, T>['end']): void {
    const sequence = ++this.#sequence
    const timer = setTimeout(() => this.#end(sequence), patienceMilliseconds)
    this.#rounds.set(sequence, { pending: new Set(workers), answers: new Map(), timer, end })
    for (const worker of workers) put(worker, sequence)
    this.#settle(sequence)
  }

  /** A worker has answered; a late or second answer is ignored. */
  answered(worker: P, sequence: number, answer: T): void {
    const round = this.#rounds.get(sequence)
    if (!round?.pending.delete(worker)) return
    round.answers.set(worker, answer)
    this.#settle(sequence)
  }

  /** A process has ended: its answer is dropped, too. */
  gone(worker: P): void {
    for (const [sequence, { pending, answers }] of this.#rounds) {
      answers.delete(worker)
      if (pending.delete(worker)) this.#settle(sequence)
    }
  }

  #settle(sequence: number): void {
    if (this.#rounds.get(sequence)?.pending.size === 0) this.#end(sequence)
  }

  #end(sequence: number): void {
    const round = this.#rounds.get(sequence)
    if (round === undefined) return
    clearTimeout(round.timer)
    this.#rounds.delete(sequence)
    round.end([...round.answers.values()], [...round.pending])
  }
}
