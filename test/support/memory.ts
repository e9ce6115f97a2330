import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

const pieceBytes = 16
const chunkBytes = 1 << 18
const pageBytes = 4096
const untouched = Buffer.alloc(chunkBytes)
/** The complement of a page of zeros. */
const zeros = Buffer.alloc(pageBytes, 0xff)

interface Piece {
  readonly name: string
  readonly inverse: Buffer
}

/** The first three bytes of a piece, by which a search skips nearly everything. */
const headOf = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)

/**
 * Secrets to look for in the memory of this process or another. They are kept as their complements, and memory is
 * complemented before it is searched, so that the kept copies are not found.
 */
export class Remembered {
  readonly #pieces = new Map<number, Piece[]>()
  readonly #heads = new Uint8Array(1 << 24)

  /**
   * Remembers the first and the last 16 bytes of a secret, in both byte orders: some libraries keep numbers with the
   * lowest byte first.
   */
  add(name: string, secret: Uint8Array): void {
    for (const at of [0, secret.length - pieceBytes]) {
      const [there, back] = [Buffer.alloc(pieceBytes), Buffer.alloc(pieceBytes)]
      for (let index = 0; index < pieceBytes; index++) {
        there[index] = ~(secret[at + index] ?? 0)
        back[pieceBytes - 1 - index] = ~(secret[at + index] ?? 0)
      }
      for (const inverse of [there, back]) this.#remember({ name, inverse })
    }
  }

  /**
   * The names of secrets of which a piece is in writable memory.
   * @param pid of a process started here; this one when absent
   */
  found(pid: number | 'self' = 'self'): string[] {
    const hits = new Set<string>()
    for (const chunk of memory(pid)) {
      for (let from = 0; from < chunk.length; from += pageBytes) {
        const to = Math.min(from + pageBytes, chunk.length - pieceBytes + 1)
        // No secret begins with a page of zeros, of which much mapped memory consists.
        if (chunk.compare(zeros, 0, Math.max(0, to - from), from, to) !== 0) this.#search(chunk, from, to, hits)
      }
    }
    return [...hits]
  }

  /** Adds the names of pieces that begin at an index between `from` and `to`. */
  #search(chunk: Buffer, from: number, to: number, hits: Set<string>): void {
    let head = headOf(chunk, from - 1)
    for (let at = from; at < to; at++) {
      head = ((head << 8) | (chunk[at + 2] ?? 0)) & 0xffffff
      if (this.#heads[head] !== 1) continue
      for (const { name, inverse } of this.#pieces.get(head) ?? []) {
        if (chunk.compare(inverse, 0, pieceBytes, at, at + pieceBytes) === 0) hits.add(name)
      }
    }
  }

  #remember(piece: Piece): void {
    const head = headOf(piece.inverse, 0)
    this.#heads[head] = 1
    this.#pieces.set(head, [...(this.#pieces.get(head) ?? []), piece])
  }
}

/** Complements of all private writable memory, in one buffer that is used again. */
function* memory(pid: number | 'self'): Generator<Buffer> {
  const chunk = Buffer.alloc(chunkBytes)
  const words = new Uint32Array(chunk.buffer, chunk.byteOffset, chunkBytes / 4)
  const file = openSync(`/proc/${pid}/mem`, 'r')
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
      const [, start, end, rights = ''] = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(line) ?? []
      if (!rights.startsWith('rw')) continue
      const last = BigInt(`0x${end}`)
      // The chunks overlap, so that no piece lies across two.
      for (let at = BigInt(`0x${start}`); at < last; at += BigInt(chunkBytes - pieceBytes)) {
        const length = Math.min(chunkBytes, Number(last - at))
        const read = readPart(file, chunk, length, at)
        // Most mapped memory was never touched.
        if (chunk.compare(untouched, 0, read, 0, read) === 0) continue
        for (let index = 0; 4 * index < read; index++) words[index] = ~(words[index] ?? 0)
        yield chunk.subarray(0, read)
        // The complement of a kept complement is the secret itself: this buffer must not be found.
        chunk.fill(0)
      }
    }
  } finally {
    closeSync(file)
  }
}

/** Reads a part of memory; unreadable parts (a device's pages) cannot hold our secrets. */
function readPart(file: number, chunk: Buffer, length: number, position: bigint): number {
  try {
    return readSync(file, chunk, 0, length, position)
  } catch {
    return 0
  }
}
