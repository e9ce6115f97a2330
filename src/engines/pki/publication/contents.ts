import { LRUCache } from 'lru-cache'
import { writePem } from '../../../crypto/pem.ts'
import type { MaybePromise } from '../../../route.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Segments } from '../crl/segments.ts'
import { type CrlRow, crlsTable } from '../crl/tables.ts'

/** How a list is sent. `json` is its PEM for the inside of a JSON string. PEM ends with a newline. */
export type Form = 'der' | 'pem' | 'json'

/** Longer lists are not cached: some 100,000 entries. */
const longestHeld = 4 * 1024 * 1024
/** Of all forms together, per worker. */
const heldBytes = 32 * 1024 * 1024

export const crlLabel = 'X509 CRL'

interface ContentsOptions {
  readonly segments: Pick<Segments, 'entries'>
  /** The longest list that is cached, in bytes. */
  readonly longest?: number
  /** Told of a list whose segments were edited or removed. @returns the error for the request */
  readonly onDamage?: (row: CrlRow, damage: DamagedRow) => Error
}

/** The bytes of lists: short ones are cached, long ones read while they are sent. */
export class Contents {
  readonly #segments: Pick<Segments, 'entries'>
  readonly #held: LRUCache<string, Buffer>
  readonly #reading = new Map<string, Promise<Buffer>>()

  readonly #longest: number
  readonly #onDamage: (row: CrlRow, damage: DamagedRow) => Error

  constructor({ segments, longest = longestHeld, onDamage = (_, damage) => damage }: ContentsOptions) {
    this.#segments = segments
    this.#longest = longest
    this.#onDamage = onDamage
    this.#held = new LRUCache({ maxSize: heldBytes, sizeCalculation: ({ length }) => length })
  }

  /** Whether a list is short enough to be cached. */
  holds({ bytes }: CrlRow): boolean {
    return bytes <= this.#longest
  }

  /** A short list, synchronously if cached. @throws the error of `onDamage` for a segment that was edited or removed */
  bytes(row: CrlRow, form: Form): MaybePromise<Buffer> {
    const key = `${row.id} ${row.rev} ${form}`
    return this.#held.get(key) ?? this.#reading.get(key) ?? this.#read(key, row, form)
  }

  /** A list piece by piece, with at most one segment in memory. @throws as bytes */
  async *pieces(row: CrlRow): AsyncGenerator<Buffer, void, undefined> {
    yield row.head
    try {
      yield* this.#segments.entries(row.parts, 'public')
    } catch (error) {
      throw error instanceof DamagedRow ? this.#onDamage(row, error) : error
    }
    yield row.tail
  }

  #read(key: string, row: CrlRow, form: Form): Promise<Buffer> {
    const read = this.#make(row, form)
      .then((bytes) => {
        this.#held.set(key, bytes)
        return bytes
      })
      .finally(() => this.#reading.delete(key))
    this.#reading.set(key, read)
    return read
  }

  async #make(row: CrlRow, form: Form): Promise<Buffer> {
    if (form === 'der') return this.#assemble(row)
    const text = `${writePem(crlLabel, await this.bytes(row, 'der'))}\n`
    return Buffer.from(form === 'pem' ? text : text.replaceAll('\n', '\\n'), 'latin1')
  }

  async #assemble(row: CrlRow): Promise<Buffer> {
    const pieces: Buffer[] = []
    for await (const piece of this.pieces(row)) pieces.push(piece)
    const whole = Buffer.concat(pieces)
    if (whole.length === row.bytes) return whole
    const reason = `the list has ${whole.length} bytes, and was signed with ${row.bytes}`
    throw this.#onDamage(row, new DamagedRow(crlsTable.name, row.id, reason))
  }
}
