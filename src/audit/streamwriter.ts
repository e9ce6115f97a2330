import { setImmediate as turn } from 'node:timers/promises'
import type { Logger } from '../log.ts'
import { Chain, type ChainHead, type ChainNames, type Pieces } from './chain.ts'
import type { LineWriter } from './linewriter.ts'

/** A way out of this process for lines that cannot be read back. */
export interface Channel {
  /** Names it in the log. */
  readonly name: string
  /** Whether each line is a message of its own, which no fragment can run into. */
  readonly datagrams: boolean
  /**
   * Makes it ready to send.
   * @throws Error, within the device's time limit: nothing was sent
   */
  open(): Promise<void>
  /**
   * Hands lines over.
   * @throws Error, within the device's time limit: a part of them may have arrived
   */
  send(lines: Buffer): Promise<void>
  /** Closes it once all that was sent is out. */
  close(): void
}

export interface StreamWriterOptions {
  readonly names: ChainNames
  readonly channel: Channel
  /** Stands before every line. */
  readonly prefix: string
  readonly log: Logger
  /** Seals the chain's head, before its first line. */
  register(writer: StreamWriter): Promise<void>
}

interface PendingLine {
  readonly record: Pieces
  readonly length: number
  readonly done: (written: boolean) => void
}

/** Lines that may wait while earlier ones are on their way, and their characters; more are refused at once. */
const mostLines = 1000
const mostCharacters = 8 << 20

/**
 * Writes the lines of one worker to a channel, waiting ones in one message. When a message over a connection fails,
 * every line waiting behind it is refused too, so that no line waits longer than a few time limits.
 */
export class StreamWriter implements LineWriter {
  readonly #options: StreamWriterOptions
  readonly #chain: Chain
  #waiting: PendingLine[] = []
  #characters = 0
  /** Resolves when no line waits any more. */
  #running: Promise<void> | undefined
  #registered = false
  #fault: unknown

  constructor(options: StreamWriterOptions) {
    this.#options = options
    this.#chain = new Chain(options.names)
  }

  /** The end of the chain as sent; not all of it may have arrived. */
  get head(): ChainHead {
    return this.#chain.head
  }

  get names(): ChainNames {
    return this.#chain.names
  }

  get path(): string {
    return this.#options.channel.name
  }

  get fault(): unknown {
    return this.#fault
  }

  write(record: Pieces): Promise<boolean> {
    let length = 0
    for (const piece of record) length += piece.length
    if (this.#waiting.length >= mostLines || this.#characters + length > mostCharacters) {
      this.#fail(new Error('too many lines wait'))
      return Promise.resolve(false)
    }
    this.#characters += length
    return new Promise((done) => {
      this.#waiting.push({ record, length, done })
      this.#running ??= this.#run()
    })
  }

  /** There is no file to change. */
  async reopen(): Promise<boolean> {
    return false
  }

  async close(): Promise<void> {
    while (this.#running) await this.#running
    this.#options.channel.close()
  }

  async #run(): Promise<void> {
    // The lines of one turn go together.
    await turn()
    while (this.#waiting.length > 0) {
      try {
        await this.#send()
      } catch (error) {
        this.#fail(error)
        this.#finish(this.#take(this.#waiting.length), false)
      }
    }
    this.#running = undefined
  }

  async #send(): Promise<void> {
    const { channel, prefix } = this.#options
    if (!this.#registered) await this.#options.register(this)
    this.#registered = true
    await channel.open()
    const batch = this.#take(channel.datagrams ? 1 : this.#waiting.length)
    const start = channel.datagrams || this.#fault === undefined ? '' : '\n'
    const { bytes, heads } = this.#chain.link(
      batch.map(({ record }) => record),
      { start, prefix },
    )
    // A line that fails from here on may have arrived: the next one must follow on it. If it was lost, the break shows
    // it.
    const head = heads.at(-1)
    if (head) this.#chain.commit(head)
    try {
      // Linked lines lie in memory that other writers use too.
      await channel.send(Buffer.from(bytes))
      this.#recover()
      this.#finish(batch, true)
    } catch (error) {
      this.#finish(batch, false)
      // A datagram that is too long says nothing about the next.
      if (!channel.datagrams) throw error
      this.#fail(error)
    }
  }

  #take(count: number): PendingLine[] {
    const taken = this.#waiting.splice(0, count)
    for (const { length } of taken) this.#characters -= length
    return taken
  }

  #finish(lines: readonly PendingLine[], written: boolean): void {
    for (const { done } of lines) done(written)
  }

  /** Logged once, not with every line. */
  #fail(error: unknown): void {
    const known = this.#fault !== undefined
    this.#fault = error
    if (known) return
    const { names, log, channel } = this.#options
    log.error({ err: error, device: names.device, to: channel.name }, 'an audit device cannot be written')
  }

  #recover(): void {
    if (this.#fault === undefined) return
    this.#fault = undefined
    const { names, log, channel } = this.#options
    log.warn({ device: names.device, to: channel.name }, 'an audit device can be written again')
  }
}
