import { unavailable } from '../errors.ts'

/** Longer than the supervisor waits for its workers. A supervisor of another version may not know the question. */
const patienceMilliseconds = 3000

/** A question of this worker to its supervisor, whose answer concurrent callers share. */
export class Inquiry<T> {
  readonly #put: (sequence: number) => void
  #sequence = 0
  #pending: PromiseWithResolvers<T> | undefined
  #timer: NodeJS.Timeout | undefined

  /** @param put sends the question, whose answer repeats the sequence number */
  constructor(put: (sequence: number) => void) {
    this.#put = put
  }

  /** @throws ApiError 503 when no answer comes */
  ask(): Promise<T> {
    if (this.#pending === undefined) {
      this.#pending = Promise.withResolvers<T>()
      this.#timer = setTimeout(() => {
        this.#end()?.reject(unavailable('the supervisor of this node does not answer'))
      }, patienceMilliseconds)
      this.#put(++this.#sequence)
    }
    return this.#pending.promise
  }

  /** @param sequence of the question: a late answer is ignored. A supervisor of an earlier version gives no number. */
  answered(answer: T, sequence = this.#sequence): void {
    if (sequence === this.#sequence) this.#end()?.resolve(answer)
  }

  #end(): PromiseWithResolvers<T> | undefined {
    clearTimeout(this.#timer)
    const pending = this.#pending
    this.#pending = undefined
    return pending
  }
}
