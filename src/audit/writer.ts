import type { Logger } from '../log.ts'
import { Chain, type ChainHead, type ChainNames, type Pieces } from './chain.ts'
import type { AppendFile } from './file.ts'

/** When a line counts as written: when the kernel has it, or when the disk has. */
export type Durability = 'write' | 'fdatasync'

export interface WriterOptions {
  readonly names: ChainNames
  readonly file: AppendFile
  /** Stands before every line. */
  readonly prefix: string
  readonly durability: Durability
  readonly log: Logger
  /** Makes the chain known; it has no line before that. */
  register(writer: Writer): Promise<void>
}

/** A line that waits to be written. */
interface Offered {
  readonly record: Pieces
  readonly done: (written: boolean) => void
}

/**
 * Writes the lines of one worker to one device. What is offered in one turn of the event loop, or while the disk is busy
 * with the lines before, goes out in one write, and everybody is answered when his own line is there.
 */
export class Writer {
  readonly #options: WriterOptions
  readonly #chain: Chain
  #waiting: Offered[] = []
  /** Lines are done one after the other. */
  #last: Promise<unknown> | undefined
  #registered = false
  /** Lines wait for what is under way. */
  #busy = false
  #fault: unknown

  constructor(options: WriterOptions) {
    this.#options = options
    this.#chain = new Chain(options.names)
  }

  /** The chain as far as it was written. */
  get head(): ChainHead {
    return this.#chain.head
  }

  get names(): ChainNames {
    return this.#chain.names
  }

  /** Why the last lines could not be written; undefined when they were. */
  get fault(): unknown {
    return this.#fault
  }

  /**
   * @returns whether it is in the file, as durable as the options say; never rejects
   */
  write(record: Pieces): Promise<boolean> {
    const written = new Promise<boolean>((done) => {
      if (this.#waiting.push({ record, done }) === 1 && !this.#busy) setImmediate(() => this.#flush())
    })
    this.#last = written
    return written
  }

  /** Lets the file go, once what was offered is written. */
  async close(): Promise<void> {
    await this.#last
    this.#options.file.close()
  }

  #flush(): void {
    const batch = this.#waiting
    if (batch.length === 0) return
    if (!this.#registered) {
      void this.#register()
      return
    }
    this.#waiting = []
    const written = this.#append(batch.map(({ record }) => record))
    if (this.#options.durability === 'write' || written === 0) finish(batch, written)
    else void this.#sync(batch, written)
  }

  async #register(): Promise<void> {
    this.#busy = true
    try {
      await this.#options.register(this)
      this.#registered = true
    } catch (error) {
      this.#fail(error)
      finish(this.#waiting, 0)
      this.#waiting = []
    }
    this.#busy = false
    this.#flush()
  }

  async #sync(batch: readonly Offered[], written: number): Promise<void> {
    this.#busy = true
    try {
      await this.#options.file.sync()
      finish(batch, written)
    } catch (error) {
      this.#fail(error)
      // What the kernel still holds of it after a failed sync nobody knows: a new descriptor is told of the next failure.
      this.#options.file.close()
      finish(batch, 0)
    }
    this.#busy = false
    this.#flush()
  }

  /** @returns how many whole lines are in the file */
  #append(records: readonly Pieces[]): number {
    const { prefix, file } = this.#options
    try {
      // Half a line of ours, or of another worker that met the same failure, must not become the beginning of this one.
      const start = this.#fault === undefined ? '' : '\n'
      const { bytes, heads } = this.#chain.link(records, { start, prefix })
      const written = file.append(bytes)
      const whole = written === bytes.length ? records.length : wholeLines(bytes.subarray(start.length, written))
      const head = heads[whole - 1]
      if (head) this.#chain.settle(head)
      if (whole === records.length) this.#recover()
      else this.#fail(new Error('only a part of the lines could be written'))
      return whole
    } catch (error) {
      this.#fail(error)
      return 0
    }
  }

  /** Logged once, not with every line. */
  #fail(error: unknown): void {
    const known = this.#fault !== undefined
    this.#fault = error
    if (known) return
    const { file, names, log } = this.#options
    log.error({ err: error, device: names.device, file: file.path }, 'an audit device cannot be written')
  }

  #recover(): void {
    if (this.#fault === undefined) return
    this.#fault = undefined
    const { file, names, log } = this.#options
    log.warn({ device: names.device, file: file.path }, 'an audit device can be written again')
  }
}

/** The first `written` lines are in the file. */
function finish(batch: readonly Offered[], written: number): void {
  for (const [index, { done }] of batch.entries()) done(index < written)
}

/** Lines of ours hold no newline but their last byte. */
function wholeLines(bytes: Uint8Array): number {
  let count = 0
  for (const byte of bytes) if (byte === 0x0a) count++
  return count
}
