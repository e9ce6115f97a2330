import { hash } from 'node:crypto'

/** Bytes as the audit log describes them, without repeating them. */
export interface Content {
  /** SHA-256, in lower-case hexadecimal. */
  readonly sha256: string
  /** In bytes. */
  readonly length: number
}

/** The description of bytes in memory. */
export const contentOf = (bytes: Uint8Array): Content => ({ sha256: hash('sha256', bytes), length: bytes.length })

/** Whole lines of PEM, and well below the buffer of a socket. */
const pieceBytes = 48 * 1024

/**
 * A long body, never whole in memory, such as a revocation list of a million entries. Nothing is read before it is
 * sent.
 */
export class Stream {
  /** The number of bytes sent. */
  readonly length: number
  /** The content of the bytes sent, or of the bytes inside them: a list in PEM has the content of its DER. */
  readonly content: Content
  /** Called once before it is sent, and not for HEAD or 304. @throws ApiError 503 when it cannot be sent now */
  readonly reserve: () => void
  readonly #open: () => AsyncIterable<Uint8Array>

  /** @param fields without `content` the bytes sent are the content itself */
  constructor(
    fields: { length: number; reserve?: () => void; open: () => AsyncIterable<Uint8Array> } & (
      | { sha256: string }
      | { content: Content }
    ),
  ) {
    this.length = fields.length
    this.reserve = fields.reserve ?? (() => undefined)
    this.content = 'content' in fields ? fields.content : { sha256: fields.sha256, length: fields.length }
    this.#open = fields.open
  }

  /**
   * The bytes, in pieces of at most 48 KiB; small ones of the source are gathered, because each piece is a system call.
   * @throws {Error} before any byte beyond `length`, or at the end when bytes are missing
   */
  async *pieces(): AsyncGenerator<Uint8Array, void, undefined> {
    let missing = this.length
    let held: Uint8Array[] = []
    let heldBytes = 0
    for await (const bytes of this.#open()) {
      missing -= bytes.length
      if (missing < 0) throw new Error(`a stream is longer than its ${this.length} bytes`)
      held.push(bytes)
      heldBytes += bytes.length
      if (heldBytes < pieceBytes) continue
      yield* slices(held)
      held = []
      heldBytes = 0
    }
    if (missing > 0) throw new Error(`${missing} of a stream's ${this.length} bytes are missing`)
    yield* slices(held)
  }
}

function* slices(parts: readonly Uint8Array[]): Generator<Uint8Array, void, undefined> {
  const [only] = parts
  const bytes = parts.length === 1 && only !== undefined ? only : Buffer.concat(parts)
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

/** The same content with bytes before and after it. */
export function enclosed(before: Uint8Array, stream: Stream, after: Uint8Array): Stream {
  return new Stream({
    length: before.length + stream.length + after.length,
    content: stream.content,
    reserve: stream.reserve,
    async *open() {
      yield before
      yield* stream.pieces()
      yield after
    },
  })
}
