import { write } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { PatientStream } from '../log/stream.ts'

interface PendingText {
  readonly text: string
  readonly done: (written: boolean) => void
}

/** Bytes that may wait for a reader; more is refused at once. */
const mostBytes = 16 << 20
const retryMilliseconds = 20

/**
 * Standard output, to which this process and its workers write whole lines one after the other. A stalled reader holds
 * up only the lines, not even the end of the process.
 */
export class Output {
  #stream = PatientStream.open(1)
  /** For a file or a terminal. */
  readonly #waiting: PendingText[] = []
  #bytes = 0
  #writing = false

  /** @param done is told whether the text is written, once it is or cannot be */
  write(text: string, done: (written: boolean) => void = () => undefined): void {
    const bytes = Buffer.byteLength(text)
    if (this.#bytes + bytes > mostBytes) {
      done(false)
      return
    }
    this.#bytes += bytes
    const settled = (written: boolean) => {
      this.#bytes -= bytes
      done(written)
    }
    // Its reader has gone; a pipe with a name may have another one.
    if (this.#stream?.closed) this.#stream = PatientStream.open(1)
    if (this.#stream) this.#stream.write(text, settled)
    else this.#queue({ text, done: settled })
  }

  #queue(pending: PendingText): void {
    this.#waiting.push(pending)
    if (!this.#writing) void this.#run()
  }

  /** On a thread, one write at a time: a file may lie on a disk that is slow. */
  async #run(): Promise<void> {
    this.#writing = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      next.done(await writeAll(Buffer.from(next.text)))
    }
    this.#writing = false
  }
}

const writeSome = promisify(write)

/** @returns false when they cannot be written */
async function writeAll(bytes: Buffer): Promise<boolean> {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += (await writeSome(1, bytes.subarray(at))).bytesWritten
    } catch (error) {
      // Another process may have made a terminal non-blocking.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false
      await delay(retryMilliseconds)
    }
  }
  return true
}
