import { after } from '../../../after.ts'
import { type PemSource, PemText } from '../../../crypto/pemstream.ts'
import type { MaybePromise } from '../../../route.ts'
import { Stream } from '../../../stream.ts'
import type { CrlRow } from '../crl/tables.ts'
import { type Contents, crlLabel } from './contents.ts'
import type { Streams } from './streams.ts'

/** Where lists are sent from. */
export interface Sources {
  readonly contents: Contents
  readonly streams: Streams
}

/** A published list. Short ones are sent from memory; long ones are streamed, a few at a time per worker. */
export class PublishedCrl {
  readonly row: CrlRow
  readonly #sources: Sources

  constructor(row: CrlRow, sources: Sources) {
    this.row = row
    this.#sources = sources
  }

  der(): MaybePromise<Buffer | Stream> {
    return this.#isHeld ? this.#sources.contents.bytes(this.row, 'der') : this.#stream()
  }

  pem(newlineAtEnd: boolean): MaybePromise<Buffer | Stream> {
    if (!this.#isHeld) return new PemText(crlLabel, this.#stream(), { newlineAtEnd }).stream()
    return after(this.#sources.contents.bytes(this.row, 'pem'), (text) => (newlineAtEnd ? text : text.subarray(0, -1)))
  }

  /** PEM, for an envelope. */
  pemInJson(newlineAtEnd: boolean): MaybePromise<PemSource> {
    if (!this.#isHeld) return new PemText(crlLabel, this.#stream(), { newlineAtEnd })
    return after(this.#sources.contents.bytes(this.row, 'json'), (text) => {
      const sent = newlineAtEnd ? text : text.subarray(0, -2)
      const content = { sha256: this.row.sha256.toString('hex'), length: this.row.bytes }
      const open = async function* () {
        yield sent
      }
      return { content, inJson: () => new Stream({ length: sent.length, content, open }) }
    })
  }

  get #isHeld(): boolean {
    return this.#sources.contents.holds(this.row)
  }

  #stream(): Stream {
    const { row } = this
    const { contents, streams } = this.#sources
    return new Stream({
      length: row.bytes,
      reserve: () => streams.promise(),
      sha256: row.sha256.toString('hex'),
      open: () => streams.send(row.bytes, contents.pieces(row)),
    })
  }
}
