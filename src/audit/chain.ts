import { hash } from 'node:crypto'

/** The end of a chain: the number and the hash of its last line. */
export interface ChainHead {
  /** 0 before the first line. */
  readonly sequence: number
  /** SHA-256 of the line's JSON text, hexadecimal. */
  readonly hash: string
}

/** The names of a chain, in each of its lines. */
export interface ChainNames {
  /** The host. */
  readonly node: string
  /** UUID of the device. */
  readonly device: string
  /** UUID of the writer: one worker's, for one device, until it is closed. */
  readonly incarnation: string
  /** Counts the restores of the database. */
  readonly epoch: number
}

/** `previous` of a chain's first line. */
export const originHash = '0'.repeat(64)

/** SHA-256 of a line: its JSON text, without the device's prefix and without the newline. */
export const lineHash = (json: string | Uint8Array): string => hash('sha256', json, 'hex')

/** Text around lines in a file. */
export interface Frame {
  /** Before the first, if anything. */
  readonly start: string
  /** Before each. */
  readonly prefix: string
}

/**
 * The text of a JSON object without its last brace, in pieces: V8 concatenates and flattens a piece that several lines
 * share only once.
 */
export type Pieces = readonly string[]

/** Lines are assembled here: a batch of the usual size needs no memory of its own. */
const scratch = Buffer.alloc(1 << 18)
/** The most UTF-8 bytes of one UTF-16 unit. */
const mostBytes = 3
/** An upper bound of the text that a chain adds to a record. */
const addedLength = 600

/**
 * The lines of one writer, each with the hash of the one before. Every line offered gets a number, but hashes follow
 * only written lines: where a device could not take lines, the next one's number shows how many are missing while its
 * `previous` still fits; where lines were taken out of the file, it does not fit.
 */
export class Chain {
  readonly names: ChainNames
  readonly #before: string
  #lastSequence = 0
  #head: ChainHead = { sequence: 0, hash: originHash }

  constructor(names: ChainNames) {
    this.names = names
    this.#before = `,"chain":${JSON.stringify(names).slice(0, -1)},"sequence":`
  }

  get head(): ChainHead {
    return this.#head
  }

  /**
   * Links records into lines; they belong to the chain once they are `commit`ted.
   * @returns the lines as a file holds them, each with a newline, in memory that the next call reuses
   */
  link(records: readonly Pieces[], { start, prefix }: Frame): { bytes: Buffer; heads: ChainHead[] } {
    let { length } = start
    for (const record of records) {
      length += prefix.length + addedLength
      for (const piece of record) length += piece.length
    }
    const bytes = mostBytes * length <= scratch.length ? scratch : Buffer.alloc(mostBytes * length)
    let previous = this.#head.hash
    const heads: ChainHead[] = []
    let end = start === '' ? 0 : bytes.write(start)
    for (const record of records) {
      const sequence = ++this.#lastSequence
      const begin = prefix === '' ? end : end + bytes.write(prefix, end)
      end = begin
      for (const piece of record) end += bytes.write(piece, end)
      // The newline is not part of the line.
      end += bytes.write(`${this.#before}${sequence},"previous":"${previous}"}}\n`, end)
      previous = lineHash(bytes.subarray(begin, end - 1))
      heads.push({ sequence, hash: previous })
    }
    return { bytes: bytes.subarray(0, end), heads }
  }

  /** The line with this head is in the file, and those linked before it. */
  commit(head: ChainHead): void {
    this.#head = head
  }
}
