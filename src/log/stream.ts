import { constants, fstatSync, openSync } from 'node:fs'
import { Socket } from 'node:net'

/** Standard output or error where it is a pipe or a socket. No write blocks: bytes that nobody reads wait in memory. */
export class PatientStream {
  readonly #stream: Socket
  readonly #shared: boolean

  /** @param shared whether the descriptor's mode is that of other processes too */
  private constructor(stream: Socket, shared: boolean) {
    this.#stream = stream
    this.#shared = shared
    // The reader has gone, and no line can report that. Each user of standard error comes here.
    if (stream.listenerCount('error') === 0) stream.on('error', () => {})
  }

  /** @returns undefined where it is neither, but a file or a terminal: these take lines at once */
  static open(descriptor: 1 | 2): PatientStream | undefined {
    const place = fstatSync(descriptor)
    if (!place.isFIFO() && !place.isSocket()) return undefined
    const own = place.isFIFO() ? reopened(descriptor) : undefined
    if (own === undefined) return new PatientStream(descriptor === 1 ? process.stdout : process.stderr, true)
    return new PatientStream(new Socket({ fd: own, readable: false, writable: true }).unref(), false)
  }

  /** Whether nothing can be written any more. */
  get closed(): boolean {
    return this.#stream.destroyed
  }

  /** Bytes that wait for the reader. */
  get waiting(): number {
    return this.#stream.writableLength
  }

  /** As much as the reader has room for is written when this returns. @param done is told whether all is written */
  write(text: string, done: (written: boolean) => void = () => undefined): void {
    if (this.#shared) unblock(this.#stream)
    this.#stream.write(text, (error) => done(!error))
  }
}

/** Opens the pipe again, in a mode of its own. @returns undefined where another user opened it */
function reopened(descriptor: number): number | undefined {
  try {
    return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
}

/** Node makes standard streams block again whenever it starts a process that inherits them, for the parent too. */
function unblock(stream: Socket): void {
  const { _handle: handle } = stream as Socket & { _handle?: { setBlocking?(blocking: boolean): void } | null }
  handle?.setBlocking?.(false)
}
