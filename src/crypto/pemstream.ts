import { Stream } from '../stream.ts'

/** Bytes in one line of 64 characters (RFC 7468 section 2). */
const lineBytes = 48

/** The end of a line: in text, and inside a JSON string. */
export type Newline = '\n' | '\\n'

/** A PEM text for an envelope. */
export interface PemSource {
  /** Of the DER inside. */
  readonly content: Stream['content']
  /** The text escaped for the inside of a JSON string. */
  inJson(): Stream
}

/** One PEM block that is never whole in memory; byte for byte as by `writePem`. */
export class PemText implements PemSource {
  readonly #begin: string
  readonly #end: string
  readonly #der: Stream
  readonly #newlineAtEnd: boolean

  constructor(label: string, der: Stream, { newlineAtEnd = false }: { newlineAtEnd?: boolean } = {}) {
    this.#begin = `-----BEGIN ${label}-----`
    this.#end = `-----END ${label}-----`
    this.#der = der
    this.#newlineAtEnd = newlineAtEnd
  }

  /** Of the DER inside. */
  get content(): Stream['content'] {
    return this.#der.content
  }

  /** The text; with `\\n` for the inside of a JSON string, where nothing else of PEM needs escaping. */
  stream(newline: Newline = '\n'): Stream {
    const lines = Math.ceil(this.#der.length / lineBytes)
    const newlines = lines + 1 + (this.#newlineAtEnd ? 1 : 0)
    const base64 = 4 * Math.ceil(this.#der.length / 3)
    return new Stream({
      length: this.#begin.length + base64 + this.#end.length + newlines * newline.length,
      content: this.content,
      reserve: this.#der.reserve,
      open: () => this.#text(newline),
    })
  }

  inJson(): Stream {
    return this.stream('\\n')
  }

  async *#text(newline: Newline): AsyncGenerator<Uint8Array, void, undefined> {
    yield Buffer.from(`${this.#begin}${newline}`)
    let rest: Uint8Array = Buffer.alloc(0)
    for await (const piece of this.#der.pieces()) {
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      const whole = bytes.length - (bytes.length % lineBytes)
      if (whole > 0) yield linesOf(bytes.subarray(0, whole), newline)
      rest = bytes.subarray(whole)
    }
    if (rest.length > 0) yield linesOf(rest, newline)
    yield Buffer.from(`${this.#end}${this.#newlineAtEnd ? newline : ''}`)
  }
}

function linesOf(bytes: Uint8Array, newline: Newline): Buffer {
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  return Buffer.from(base64.replace(/.{1,64}/g, `$&${newline}`), 'latin1')
}
