import type { Clock } from '../clock.ts'
import { Backoff, within } from './backoff.ts'
import type { Channel } from './streamwriter.ts'

/** Writes whole lines to the standard output of the server. @returns whether they are written */
export type Print = (lines: string) => Promise<boolean>

const timeoutMilliseconds = 2000

/** The standard output of the server: lines of all workers go through the supervisor, so that they never mix. */
export class StdoutChannel implements Channel {
  readonly name = 'stdout'
  readonly datagrams = false
  readonly #print: Print | undefined
  readonly #backoff: Backoff

  /** @param print absent in commands, whose standard output is their own answer */
  constructor(print: Print | undefined, clock: Clock) {
    this.#print = print
    this.#backoff = new Backoff(clock)
  }

  async open(): Promise<void> {
    if (this.#print === undefined) throw new Error('the audit device stdout is that of the server, not of a command')
    this.#backoff.check()
  }

  async send(lines: Buffer): Promise<void> {
    try {
      const printing = this.#print?.(lines.toString('utf8')) ?? Promise.resolve(false)
      const written = await within(timeoutMilliseconds, printing, () => undefined)
      if (!written) throw new Error('standard output takes no more lines')
      this.#backoff.reset()
    } catch (error) {
      this.#backoff.failed(error)
      throw error
    }
  }

  close(): void {
    // Standard output belongs to the server.
  }
}
