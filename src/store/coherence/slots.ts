import { randomUUID } from 'node:crypto'
import { closeSync, ftruncateSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SharedLogPlace } from '../../workload.ts'
import { entryBytes, entryOf, headBytes, mostRings, numberIn, pieces, ringRecords, ringsAt } from './ring.ts'

/**
 * The shared log as its node's supervisor has it: a file without a name, in memory where the system has a place for
 * such files, whose descriptor the workers inherit.
 */
export class Slots implements Disposable {
  readonly id = randomUUID()
  readonly descriptor: number

  /** @throws Error when no place can be written */
  constructor() {
    this.descriptor = this.#open()
    ftruncateSync(this.descriptor, headBytes)
    writeSync(this.descriptor, Buffer.from(this.id, 'latin1'), 0, this.id.length, 0)
  }

  #open(): number {
    try {
      return unnamed(join('/dev/shm', `strongroom-${this.id}`))
    } catch {
      return unnamed(join(tmpdir(), `strongroom-${this.id}`))
    }
  }

  /**
   * A place for one more process; undefined when there is none.
   * @param taken the slots of processes that have not ended: no two may write to one ring
   * @param descriptor of the log in that process
   */
  take(taken: ReadonlySet<number | undefined>, descriptor: number): SharedLogPlace | undefined {
    let slot = 0
    while (taken.has(slot)) slot++
    if (slot >= mostRings) return undefined
    const entry = Buffer.alloc(entryBytes)
    readSync(this.descriptor, entry, 0, entryBytes, ringsAt)
    if ((numberIn(entry, 0) ?? 0) <= slot) {
      // The memory is taken now, so that a worker's append cannot lack it.
      for (const { at, length } of pieces(slot, 0, ringRecords))
        writeSync(this.descriptor, Buffer.alloc(length), 0, length, at)
      writeSync(this.descriptor, entryOf(slot + 1), 0, entryBytes, ringsAt)
    }
    return { id: this.id, descriptor, slot }
  }

  [Symbol.dispose](): void {
    closeSync(this.descriptor)
  }
}

function unnamed(path: string): number {
  const descriptor = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return descriptor
}
