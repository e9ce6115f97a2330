import { pino } from 'pino'
import { PatientStream } from './stream.ts'

/** Bytes of this process's lines that may wait for a reader. */
const mostBytes = 1 << 20

/** The receiver of a log's lines. */
export interface Lines {
  write(line: string): void
}

/**
 * Standard error. A line is written when `write` returns, as long as there is room. A pipe or socket that nobody reads
 * holds up neither the event loop nor the end of the process: its lines wait, and are lost beyond a mebibyte.
 */
export function standardError(): Lines {
  const stream = PatientStream.open(2)
  return stream ? new PatientLines(stream) : pino.destination({ dest: 2, sync: true })
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
    if (this.#lost > 0) this.#stream.write(lossLine(this.#lost))
    this.#lost = 0
    this.#stream.write(line)
  }
}

/** As pino writes a warning. */
function lossLine(lost: number): string {
  const msg = `${lost} lines of the log are lost, because nobody read it`
  return `${JSON.stringify({ level: 40, time: Date.now(), pid: process.pid, msg })}\n`
}
