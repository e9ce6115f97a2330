import type { Logger } from '../log.ts'
import { Chain, type ChainHead, type ChainNames } from './chain.ts'
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

/** Lines that go out together. */
interface Batch {
  readonly records: string[]
  /** How many of them are in the file. */
  readonly done: Promise<number>
  readonly finish: (written: number) => void
}

/**
 * Writes the lines of one worker to one device. What is offered in one turn of the event loop, or while the disk is busy
 * with the lines before, goes out in one write, and everybody is answered when his own line is there.
 */
export class Writer {
  readonly #options: WriterOptions
  readonly #chain: Chain
  #batch: Batch | undefined
  /** Batches are done one after the other. */
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
   * @param record text of a JSON object
   * @returns whether it is in the file, as durable as the options say; never rejects
   */
  write(record: string): Promise<boolean> {
    this.#batch ??= this.#begin()
    const index = this.#batch.records.push(record) - 1
    return this.#batch.done.then((written) => index < written)
  }

  /** Lets the file go, once what was offered is written. */
  async close(): Promise<void> {
    await this.#last
    this.#options.file.close()
  }

  #begin(): Batch {
    if (!this.#busy) setImmediate(() => this.#flush())
    const { promise, resolve } = Promise.withResolvers<number>()
    this.#last = promise
    return { records: [], done: promise, finish: resolve }
  }

  #flush(): void {
    const batch = this.#batch
    if (batch === undefined) return
    if (!this.#registered) {
      void this.#register(batch)
      return
    }
    this.#batch = undefined
    const written = this.#append(batch.records)
    if (this.#options.durability === 'write' || written === 0) batch.finish(written)
    else void this.#sync(batch, written)
  }

  async #register(batch: Batch): Promise<void> {
    this.#busy = true
    try {
      await this.#options.register(this)
      this.#registered = true
    } catch (error) {
      this.#fail(error)
      this.#batch = undefined
      batch.finish(0)
    }
    this.#busy = false
    this.#flush()
  }

  async #sync(batch: Batch, written: number): Promise<void> {
    this.#busy = true
    try {
      await this.#options.file.sync()
      batch.finish(written)
    } catch (error) {
      this.#fail(error)
      // What the kernel still holds of it after a failed sync nobody knows: a new descriptor is told of the next failure.
      this.#options.file.close()
      batch.finish(0)
    }
    this.#busy = false
    this.#flush()
  }

  /** @returns how many lines are in the file */
  #append(records: readonly string[]): number {
    try {
      const { lines, heads } = this.#chain.link(records)
      const whole = this.#put(lines)
      const head = heads[whole - 1]
      if (head) this.#chain.settle(head)
      if (whole === lines.length) this.#recover()
      else this.#fail(new Error('only a part of the lines could be written'))
      return whole
    } catch (error) {
      this.#fail(error)
      return 0
    }
  }

  /** @returns how many whole lines are in the file */
  #put(lines: readonly string[]): number {
    const { prefix, file } = this.#options
    // Half a line of ours, or of another worker that met the same failure, must not become the beginning of this one.
    const start = this.#fault === undefined ? '' : '\n'
    const bytes = Buffer.from(`${start}${prefix}${lines.join(`\n${prefix}`)}\n`)
    const written = file.append(bytes)
    return written === bytes.length ? lines.length : wholeLines(bytes.subarray(start.length, written))
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

/** Lines of ours hold no newline but their last byte. */
function wholeLines(bytes: Uint8Array): number {
  let count = 0
  for (const byte of bytes) if (byte === 0x0a) count++
  return count
}
