import { writeSync } from 'node:fs'
import { PatientStream } from './stream.ts'

/** Bytes of this process's lines that may wait for a reader. */
const mostBytes = 1 << 20

/** The receiver of a log's lines. */
export interface Lines {
  write(line: string): void
}

/**
 * Standard error. A line is written when `write` returns, as long as there is room. A pipe or socket that nobody reads
 * holds up neither the event loop nor the end of the process: its lines wait, and are lost beyond a mebibyte. A line
 * that a full disk or a closed terminal does not take is lost: no failure of the log is one of the process.
 */
export function standardError(): Lines {
  const stream = PatientStream.open(2)
  return stream ? new PatientLines(stream) : new PlainLines()
}

/** A file or a terminal. */
class PlainLines implements Lines {
  #lost = 0

  write(line: string): void {
    try {
      if (this.#lost > 0) writeWhole(lossLine(this.#lost, 'they could not be written'))
      this.#lost = 0
      writeWhole(line)
    } catch {
      this.#lost++
    }
  }
}

function writeWhole(text: string): void {
  const bytes = Buffer.from(text)
  for (let written = 0; written < bytes.length; ) written += writeSync(2, bytes, written)
}

class PatientLines implements Lines {
  readonly #stream: PatientStream
  #lost = 0

  constructor(stream: PatientStream) {
    this.#stream = stream
  }

  write(line: string): void {
    if (this.#stream.waiting + line.length > mostBytes) {
      this.#lost++
      return
    }
    if (this.#lost > 0) this.#stream.write(lossLine(this.#lost, 'nobody read it'))
    this.#lost = 0
    this.#stream.write(line)
  }
}

/** As pino writes a warning. */
function lossLine(lost: number, reason: string): string {
  const msg = `${lost} lines of the log are lost, because ${reason}`
  return `${JSON.stringify({ level: 40, time: Date.now(), pid: process.pid, msg })}\n`
}
