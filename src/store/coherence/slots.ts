import { randomUUID } from 'node:crypto'
import { closeSync, ftruncateSync, openSync, readSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SharedLogPlace } from '../../workload.ts'
import { entryBytes, entryOf, headBytes, mostRings, numberIn, pieces, ringRecords, ringsAt, writeAll } from './ring.ts'

/**
 * The shared log as its node's supervisor has it: a file without a name, in memory where the system has a place for
 * such files, whose descriptor the workers inherit.
 */
export class Slots implements Disposable {
  readonly id = randomUUID()
  readonly descriptor: number
  readonly #reserved: number

  /**
   * @param slots for which memory is taken at once
   * @throws Error when no place has room
   */
  constructor(slots = 0) {
    this.descriptor = this.#firstOf(['/dev/shm', tmpdir()], slots)
    this.#reserved = slots
  }

  #firstOf([directory = '', ...others]: readonly string[], slots: number): number {
    try {
      return this.#openIn(directory, slots)
    } catch (error) {
      if (others.length === 0) throw error
      return this.#firstOf(others, slots)
    }
  }

  #openIn(directory: string, slots: number): number {
    const path = join(directory, `strongroom-${this.id}`)
    const descriptor = openSync(path, 'wx+', 0o600)
    try {
      unlinkSync(path)
      ftruncateSync(descriptor, headBytes)
      writeAll(descriptor, Buffer.from(this.id, 'latin1'), 0)
      for (let slot = 0; slot < slots; slot++) reserve(descriptor, slot)
      return descriptor
    } catch (error) {
      closeSync(descriptor)
      throw error
    }
  }

  /**
   * A place for one more process; undefined when there is none.
   * @param taken the slots of processes that have not ended: no two may write to one ring
   * @param descriptor of the log in that process
   * @throws Error when there is no memory for it
   */
  take(taken: ReadonlySet<number | undefined>, descriptor: number): SharedLogPlace | undefined {
    let slot = 0
    while (taken.has(slot)) slot++
    if (slot >= mostRings) return undefined
    const entry = Buffer.alloc(entryBytes)
    readSync(this.descriptor, entry, 0, entryBytes, ringsAt)
    if ((numberIn(entry, 0) ?? 0) <= slot) {
      if (slot >= this.#reserved) reserve(this.descriptor, slot)
      writeAll(this.descriptor, entryOf(slot + 1), ringsAt)
    }
    return { id: this.id, descriptor, slot }
  }

  [Symbol.dispose](): void {
    closeSync(this.descriptor)
  }
}

/** Takes the memory of a ring, so that a worker's append cannot lack it. */
function reserve(descriptor: number, slot: number): void {
  for (const { at, length } of pieces(slot, 0, ringRecords)) writeAll(descriptor, Buffer.alloc(length), at)
}
