import { closeSync, constants, fchmodSync, fdatasync, fstatSync, openSync, type Stats, writeSync } from 'node:fs'

/** Appending is one write; a FIFO without a reader must not hang the event loop. */
const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * A file that several processes append to. On a local file system the kernel takes one write with O_APPEND after the
 * other, so lines of different workers never mix.
 */
export class AppendFile {
  readonly path: string
  readonly #mode: number
  #descriptor: number | undefined

  /** @param mode permission bits the file is given; 0 leaves them as they are */
  constructor(path: string, mode: number) {
    this.path = path
    this.#mode = mode
  }

  /**
   * Appends; opens the file first, or again when writing failed or the file was deleted (an unlinked file would take
   * the bytes with it).
   * @returns the number of bytes written, fewer than given on a disk that fills up
   * @throws the system's Error when nothing was written
   */
  append(bytes: Uint8Array): number {
    if (this.#descriptor !== undefined) {
      const written = this.#tryWrite(bytes)
      if (written !== undefined && !this.#deleted) return written
      this.close()
    }
    this.#descriptor = this.#open()
    return writeAll(this.#descriptor, bytes)
  }

  /**
   * The file that the path names now, opened (and made, if need be); undefined if that is the file open here, or if no
   * file is open: the next append opens the path.
   * @throws the system's Error when it cannot be opened
   */
  successor(): AppendFile | undefined {
    if (this.#descriptor === undefined) return undefined
    const next = new AppendFile(this.path, this.#mode)
    next.#descriptor = next.#open()
    if (!sameFile(next.#descriptor, this.#descriptor)) return next
    next.close()
    return undefined
  }

  /** Appended bytes survive a loss of power once this resolves. */
  sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#descriptor === undefined) reject(new Error('the file is not open'))
      else fdatasync(this.#descriptor, (error) => (error ? reject(error) : resolve()))
    })
  }

  close(): void {
    if (this.#descriptor === undefined) return
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    try {
      closeSync(descriptor)
    } catch {
      // The descriptor is gone all the same, and its lines were reported already.
    }
  }

  get #deleted(): boolean {
    return this.#descriptor !== undefined && fstatSync(this.#descriptor).nlink === 0
  }

  /** Undefined when nothing could be written; opening the file again may help. */
  #tryWrite(bytes: Uint8Array): number | undefined {
    try {
      return this.#descriptor === undefined ? undefined : writeAll(this.#descriptor, bytes)
    } catch {
      return undefined
    }
  }

  #open(): number {
    const descriptor = openSync(this.path, flags, this.#mode || 0o600)
    try {
      const stats = fstatSync(descriptor)
      if (!stats.isFile() && !stats.isCharacterDevice()) throw new Error(`${this.path} is no file`)
      this.#restrict(descriptor, stats)
      return descriptor
    } catch (error) {
      closeSync(descriptor)
      throw error
    }
  }

  #restrict(descriptor: number, stats: Stats): void {
    if (this.#mode !== 0 && stats.isFile() && (stats.mode & 0o777) !== this.#mode) fchmodSync(descriptor, this.#mode)
  }
}

function sameFile(one: number, other: number): boolean {
  const [a, b] = [one, other].map((descriptor) => fstatSync(descriptor, { bigint: true }))
  return a?.dev === b?.dev && a?.ino === b?.ino
}

/**
 * A write is nearly always whole; after a short one the next tells the reason. @throws Error when nothing was written
 */
function writeAll(descriptor: number, bytes: Uint8Array): number {
  let written = 0
  while (written < bytes.length) {
    try {
      written += writeSync(descriptor, bytes, written)
    } catch (error) {
      if (written === 0) throw error
      return written
    }
  }
  return written
}
