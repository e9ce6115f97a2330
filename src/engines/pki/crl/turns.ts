/** A run that has not begun yet, and the merged order of its callers. */
interface Next<T, R> {
  order: T
  readonly done: Promise<R>
}

/** Runs work one at a time for each key. Callers that arrive during a run share the next one, which begins after it. */
export class Turns<T, R> {
  readonly #run: (order: T) => Promise<R>
  readonly #merge: (one: T, other: T) => T
  readonly #running = new Map<string, Promise<unknown>>()
  readonly #next = new Map<string, Next<T, R>>()

  /** @param merge the order that serves both; `other` came later */
  constructor(run: (order: T) => Promise<R>, merge: (one: T, other: T) => T) {
    this.#run = run
    this.#merge = merge
  }

  take(key: string, order: T): Promise<R> {
    const waiting = this.#next.get(key)
    if (waiting !== undefined) {
      waiting.order = this.#merge(waiting.order, order)
      return waiting.done
    }
    const running = this.#running.get(key)
    if (running === undefined) return this.#start(key, order)
    const next: Next<T, R> = {
      order,
      done: running.then(() => {
        this.#next.delete(key)
        return this.#start(key, next.order)
      }),
    }
    this.#next.set(key, next)
    return next.done
  }

  #start(key: string, order: T): Promise<R> {
    const run = this.#run(order)
    const ended: Promise<unknown> = run.then(
      () => undefined,
      () => undefined,
    )
    const forgotten = ended.then(() => {
      if (this.#running.get(key) === forgotten) this.#running.delete(key)
    })
    this.#running.set(key, forgotten)
    return run
  }
}
