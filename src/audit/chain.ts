import { hash } from 'node:crypto'

/** Where a chain stands: its last line's number, and the hash of that line. */
export interface ChainHead {
  /** 0 before the first line. */
  readonly sequence: number
  /** SHA-256 of the line's JSON text, hexadecimal. */
  readonly hash: string
}

/** What every line of a chain says of it. */
export interface ChainNames {
  /** The host. */
  readonly node: string
  /** UUID of the device. */
  readonly device: string
  /** The writer's life: one worker's, for one device. */
  readonly incarnation: string
  /** The database's life. */
  readonly epoch: number
}

/** What stands as `previous` in a chain's first line. */
export const origin = '0'.repeat(64)

/** SHA-256 of a line: its JSON text, without the device's prefix and without the newline. */
export const lineHash = (json: string): string => hash('sha256', json, 'hex')

/**
 * The lines of one writer, each with the hash of the one before. Numbers are given to lines when they are offered, hashes
 * follow what was written: where a device could not take lines, the next one's number shows how many are missing while
 * its `previous` still fits; where somebody took lines out of the file, it does not fit.
 */
export class Chain {
  readonly names: ChainNames
  readonly #before: string
  #offered = 0
  #head: ChainHead = { sequence: 0, hash: origin }

  constructor(names: ChainNames) {
    this.names = names
    this.#before = `,"chain":${JSON.stringify(names).slice(0, -1)},"sequence":`
  }

  get head(): ChainHead {
    return this.#head
  }

  /** Links records, each the text of a JSON object, to lines; they belong to the chain once they are `settle`d. */
  link(records: readonly string[]): { lines: string[]; heads: ChainHead[] } {
    let previous = this.#head.hash
    const lines: string[] = []
    const heads: ChainHead[] = []
    for (const record of records) {
      const sequence = ++this.#offered
      const line = `${record.slice(0, -1)}${this.#before}${sequence},"previous":"${previous}"}}`
      previous = lineHash(line)
      lines.push(line)
      heads.push({ sequence, hash: previous })
    }
    return { lines, heads }
  }

  /** The line with this head is in the file, and those linked before it. */
  settle(head: ChainHead): void {
    this.#head = head
  }
}
