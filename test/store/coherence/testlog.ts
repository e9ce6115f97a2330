import { Slots } from '../../../src/store/coherence/slots.ts'
import type { SharedLogPlace } from '../../../src/workload.ts'

/** A shared log, with a place for each of the processes that share it. */
export class TestLog implements Disposable {
  readonly slots = new Slots()
  readonly #taken = new Set<number>()

  place(): SharedLogPlace {
    const place = this.slots.take(this.#taken, this.slots.descriptor)
    if (place === undefined) throw new Error('this log is full')
    this.#taken.add(place.slot)
    return place
  }

  [Symbol.dispose](): void {
    this.slots[Symbol.dispose]()
  }
}
