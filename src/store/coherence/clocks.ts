import { unavailable } from '../../errors.ts'
import type { Moment } from './known.ts'

/** How far the database's clock is ahead of this host's. */
export interface Skew {
  readonly milliseconds: number
  /** The true difference may be this much more or less. */
  readonly toleranceMilliseconds: number
}

/** The database's clock beside this host's, as of the last poll. */
export class Clocks {
  #skew: Skew | undefined

  get skew(): Skew | undefined {
    return this.#skew
  }

  /** @param time the database's, at some moment between the two */
  compare(began: Moment, ended: Moment, time: number): void {
    this.#skew = {
      milliseconds: time - (began.wall + ended.wall) / 2,
      toleranceMilliseconds: Math.abs(ended.wall - began.wall) / 2,
    }
  }

  /** @throws ApiError 503 when the clocks certainly differ by more than this, or were never compared */
  require(limitMilliseconds: number): void {
    const skew = this.#skew
    if (skew === undefined) throw unavailable("this host's clock has not been compared with the database's yet")
    const { milliseconds, toleranceMilliseconds } = skew
    if (Math.abs(milliseconds) - toleranceMilliseconds <= limitMilliseconds) return
    const seconds = (Math.abs(milliseconds) / 1000).toFixed(1)
    const side = milliseconds > 0 ? 'behind' : 'ahead of'
    throw unavailable(
      `this host's clock is ${seconds} s ${side} the database's; at most ${limitMilliseconds / 1000} s are allowed`,
    )
  }
}
