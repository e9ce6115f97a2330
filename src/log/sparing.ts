import type { Logger } from '../log.ts'

const windowMilliseconds = 1000
const mostLines = 20

/**
 * Warnings that any request may cause, as while an audit disk is full: the first twenty of a second are lines, the
 * others are one line with their number when the second has passed. Else callers would fill the disk of the log.
 */
export class SparingWarnings {
  readonly #log: Pick<Logger, 'warn'>
  readonly #message: string
  #lines = 0
  #leftOut = 0

  constructor(log: Pick<Logger, 'warn'>, message: string) {
    this.#log = log
    this.#message = message
  }

  warn(about: object): void {
    if (this.#lines === 0) setTimeout(() => this.#next(), windowMilliseconds).unref()
    if (this.#lines === mostLines) {
      this.#leftOut++
      return
    }
    this.#lines++
    this.#log.warn(about, this.#message)
  }

  /** Begins anew: the next warning is a line. */
  #next(): void {
    if (this.#leftOut > 0) this.#log.warn({ times: this.#leftOut }, `${this.#message}, more often than the log shows`)
    this.#lines = 0
    this.#leftOut = 0
  }
}
