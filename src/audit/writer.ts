import type { Logger } from '../log.ts'
import { Chain, type ChainHead, type ChainNames, type Pieces } from './chain.ts'
import type { AppendFile } from './file.ts'
import type { Boundary, LineWriter } from './linewriter.ts'

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
export class Writer implements LineWriter {
  readonly #options: WriterOptions
  readonly #chain: Chain
  #file: AppendFile
  #waiting: PendingLine[] = []
  /** Requested changes of the file that have not begun. */
  readonly #changes: (() => Promise<void>)[] = []
  /** Resolves when the work offered last is done, and so all before it. */
  #last: Promise<unknown> | undefined
  #registered = false
  /** Whether a registration, a sync or a change of the file is under way: lines wait for it. */
  #busy = false
  #fault: unknown

  constructor(options: WriterOptions) {
    this.#options = options
    this.#file = options.file
    this.#chain = new Chain(options.names)
  }

  /** The end of the chain as written. */
  get head(): ChainHead {
    return this.#chain.head
  }

  get names(): ChainNames {
    return this.#chain.names
  }

  /** The path of the file. */
  get path(): string {
    return this.#file.path
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

  /**
   * Switches to the file that the path names now: a closing line ends the old file and an opening line begins the new
   * one, both in this chain. Lines offered before come before them.
   * @returns whether there was another file
   * @throws the system's Error when it cannot be opened or written: the old file stays in use
   */
  reopen(boundary: Boundary): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    this.#changes.push(() => this.#changeFile(boundary).then(resolve, reject))
    setImmediate(() => this.#flush())
    this.#last = Promise.allSettled([this.#last, promise])
    return promise
  }

  /** Closes the file, once every line offered is written. */
  async close(): Promise<void> {
    await this.#last
    this.#file.close()
  }

  #flush(): void {
    if (this.#busy) return
    if (this.#changes.length > 0) {
      void this.#change()
      return
    }
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

  async #change(): Promise<void> {
    this.#busy = true
    await this.#changes.shift()?.()
    this.#busy = false
    this.#flush()
  }

  async #changeFile(boundary: Boundary): Promise<boolean> {
    const [old, next] = [this.#file, this.#file.successor()]
    if (next === undefined) return false
    this.#append([boundary('closed')])
    await this.#settle(old)
    this.#file = next
    if (this.#append([boundary('opened')]) === 0) {
      this.#file = old
      next.close()
      throw this.#fault
    }
    await this.#settle(next)
    this.#recover()
    old.close()
    return true
  }

  /** Syncs a line that no caller waits for: a failure shows with the next sync. */
  async #settle(file: AppendFile): Promise<void> {
    if (this.#options.durability === 'fdatasync') await file.sync().catch(() => undefined)
  }

  async #sync(batch: readonly PendingLine[], written: number): Promise<void> {
    this.#busy = true
    try {
      await this.#file.sync()
      this.#finish(batch, written)
    } catch (error) {
      this.#fail(error)
      // After a failed sync the kernel may drop the dirty pages and report no further error to this descriptor.
      this.#file.close()
      finish(batch, 0)
    }
    this.#busy = false
    this.#flush()
  }

  /** @returns the number of whole lines in the file */
  #append(records: readonly Pieces[]): number {
    const { prefix } = this.#options
    try {
      // After a failure the file may end in half a line, ours or another worker's, which must not run into this one.
      const start = this.#fault === undefined ? '' : '\n'
      const { bytes, heads } = this.#chain.link(records, { start, prefix })
      const written = this.#file.append(bytes)
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
    const { names, log } = this.#options
    log.error({ err: error, device: names.device, file: this.#file.path }, 'an audit device cannot be written')
  }

  #recover(): void {
    if (this.#fault === undefined) return
    this.#fault = undefined
    const { names, log } = this.#options
    log.warn({ device: names.device, file: this.#file.path }, 'an audit device can be written again')
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
