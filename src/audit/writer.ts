import type { Logger } from '../log.ts'
import { Chain, type ChainHead, type ChainNames, type Pieces } from './chain.ts'
import type { AppendFile } from './file.ts'

/** When a line counts as written: once the kernel has it, or once the disk has it. */
export type Durability = 'write' | 'fdatasync'

export interface WriterOptions {
  readonly names: ChainNames
  readonly file: AppendFile
  /** Stands before every line. */
  readonly prefix: string
  readonly durability: Durability
  readonly log: Logger
  /** Seals the chain's head, before its first line. */
  register(writer: Writer): Promise<void>
}

/** A line to be written. */
interface PendingLine {
  readonly record: Pieces
  readonly done: (written: boolean) => void
}

/**
 * Writes the lines of one worker to one device. The lines of one turn of the event loop, and those that come while the
 * disk is busy with earlier ones, go out in one write; each caller is answered for its own line.
 */
export class Writer {
  readonly #options: WriterOptions
  readonly #chain: Chain
  #waiting: PendingLine[] = []
  /** Resolves when the line offered last is done, and so all before it. */
  #last: Promise<unknown> | undefined
  #registered = false
  /** Whether a registration or a sync is under way: lines wait for it. */
  #busy = false
  #fault: unknown

  constructor(options: WriterOptions) {
    this.#options = options
    this.#chain = new Chain(options.names)
  }

  /** The end of the chain as written. */
  get head(): ChainHead {
    return this.#chain.head
  }

  get names(): ChainNames {
    return this.#chain.names
  }

  /** The error that kept the last lines from being written, if any. */
  get fault(): unknown {
    return this.#fault
  }

  /**
   * Writes a record as the next line.
   * @returns whether it is in the file, as durable as the options say; never rejects
   */
  write(record: Pieces): Promise<boolean> {
    const written = new Promise<boolean>((done) => {
      if (this.#waiting.push({ record, done }) === 1 && !this.#busy) setImmediate(() => this.#flush())
    })
    this.#last = written
    return written
  }

  /** Closes the file, once every line offered is written. */
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
    if (this.#options.durability === 'write' || written === 0) this.#finish(batch, written)
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

  async #sync(batch: readonly PendingLine[], written: number): Promise<void> {
    this.#busy = true
    try {
      await this.#options.file.sync()
      this.#finish(batch, written)
    } catch (error) {
      this.#fail(error)
      // After a failed sync the kernel may drop the dirty pages and report no further error to this descriptor.
      this.#options.file.close()
      finish(batch, 0)
    }
    this.#busy = false
    this.#flush()
  }

  /** @returns the number of whole lines in the file */
  #append(records: readonly Pieces[]): number {
    const { prefix, file } = this.#options
    try {
      // After a failure the file may end in half a line, ours or another worker's, which must not run into this one.
      const start = this.#fault === undefined ? '' : '\n'
      const { bytes, heads } = this.#chain.link(records, { start, prefix })
      const written = file.append(bytes)
      const whole = written === bytes.length ? records.length : wholeLines(bytes.subarray(start.length, written))
      const head = heads[whole - 1]
      if (head) this.#chain.commit(head)
      if (whole < records.length) this.#fail(new Error('only a part of the lines could be written'))
      return whole
    } catch (error) {
      this.#fail(error)
      return 0
    }
  }

  /** A device works again once whole lines are as durable as they must be. */
  #finish(batch: readonly PendingLine[], written: number): void {
    if (written === batch.length) this.#recover()
    finish(batch, written)
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
function finish(batch: readonly PendingLine[], written: number): void {
  for (const [index, { done }] of batch.entries()) done(index < written)
}

/** A line has no newline but its last byte. */
function wholeLines(bytes: Uint8Array): number {
  let count = 0
  for (const byte of bytes) if (byte === 0x0a) count++
  return count
}
