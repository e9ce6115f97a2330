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
export const lineHash = (json: string | Uint8Array): string => hash('sha256', json, 'hex')

/** What stands around lines in a file. */
export interface Frame {
  /** Before the first, if anything. */
  readonly start: string
  /** Before each. */
  readonly prefix: string
}

/**
 * The text of a JSON object without its last brace, in pieces: what several lines have in common is put together, and made
 * flat by V8, once.
 */
export type Pieces = readonly string[]

/** Where lines are put together: a batch of the usual size needs no memory of its own. */
const room = Buffer.alloc(1 << 18)
/** No text has more bytes in UTF-8 for one unit in UTF-16. */
const mostBytes = 3
/** More than what a chain adds to a record. */
const addedLength = 600

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

  /**
   * Links records to lines; they belong to the chain once they are `settle`d.
   * @returns the lines as they stand in a file, each with a newline, in memory that the next call uses again
   */
  link(records: readonly Pieces[], { start, prefix }: Frame): { bytes: Buffer; heads: ChainHead[] } {
    let { length } = start
    for (const record of records) {
      length += prefix.length + addedLength
      for (const piece of record) length += piece.length
    }
    const bytes = mostBytes * length <= room.length ? room : Buffer.alloc(mostBytes * length)
    let previous = this.#head.hash
    const heads: ChainHead[] = []
    let end = start === '' ? 0 : bytes.write(start)
    for (const record of records) {
      const sequence = ++this.#offered
      const begin = prefix === '' ? end : end + bytes.write(prefix, end)
      end = begin
      for (const piece of record) end += bytes.write(piece, end)
      // The newline is no part of the line.
      end += bytes.write(`${this.#before}${sequence},"previous":"${previous}"}}\n`, end)
      previous = lineHash(bytes.subarray(begin, end - 1))
      heads.push({ sequence, hash: previous })
    }
    return { bytes: bytes.subarray(0, end), heads }
  }

  /** The line with this head is in the file, and those linked before it. */
  settle(head: ChainHead): void {
    this.#head = head
  }
}
