import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parseTargets } from '../../src/store/pool/target.ts'
import { wholeAnswers } from './answers.ts'

/**
 * The fate of the next COMMIT: `before` cuts the line without passing it on, `after` passes it on and cuts the line
 * once the server has answered, `late` cuts the client's side and passes it on when `deliver` is called, `last` passes
 * the next one of a writing transaction and its answer on, and nothing after it: the database is out of reach then.
 */
export type Cut = 'none' | 'before' | 'after' | 'late' | 'last'

/** Whether a COMMIT is sent, alone or after other statements; a look may follow. */
export const isCommit = (bytes: Buffer): boolean =>
  /COMMIT(; (SELECT|EXECUTE) [^;]*)?$/.test(bytes.subarray(-400).toString('latin1'))

/** A line to the database that can be cut around a COMMIT, or go silent as a dead network does. */
export class Line implements AsyncDisposable {
  cut: Cut = 'none'
  silent = false
  /** The delay of the server's answers. */
  lagMilliseconds = 0
  /** Bytes that pass, to the server and to the client, before a line is cut, once. */
  left = { up: Number.POSITIVE_INFINITY, down: Number.POSITIVE_INFINITY }
  /** Commands that clients have sent: each is a round trip. */
  commands = 0
  /** Connections that clients have opened. */
  connections = 0
  /** Connections that clients have closed. */
  closed = 0
  #over = false
  #held: { bytes: (() => void)[]; arrived: () => void } | undefined
  /** Passes the late COMMIT on to the server, and ends the line. */
  deliver: () => void = () => undefined
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #url: string

  private constructor(url: string) {
    this.#url = url
    this.#server = createServer((client) => this.#carry(client))
  }

  static async open(url: string): Promise<Line> {
    const line = new Line(url)
    await new Promise<void>((resolve) => line.#server.listen(0, '127.0.0.1', resolve))
    return line
  }

  /** The database's URL through this line. */
  get url(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('not listening')
    const url = new URL(this.#url)
    url.searchParams.delete('socketPath')
    url.hostname = '127.0.0.1'
    url.port = String(address.port)
    return url.href
  }

  /** Keeps back all bytes for the database from now on; `arrived` resolves with the first of them. */
  hold(): { arrived: Promise<void>; release(): void } {
    const { promise: arrived, resolve } = Promise.withResolvers<void>()
    const held = { bytes: [] as (() => void)[], arrived: resolve }
    this.#held = held
    const release = (): void => {
      this.#held = undefined
      for (const send of held.bytes) send()
    }
    return { arrived, release }
  }

  #carry(client: Socket): void {
    this.connections++
    if (this.#over) return void client.destroy()
    const [target] = parseTargets(this.#url)
    if (!target) throw new Error('no target')
    const server = target.socketPath ? connect(target.socketPath) : connect(target.port, target.host)
    let writes = false
    let whole: ReturnType<typeof wholeAnswers> | undefined
    let answers = Promise.resolve()
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => this.#sockets.delete(socket))
    }
    client.on('data', (bytes) => {
      // The first packet of a command has the number 0; clients here send the next one after the answer.
      if (bytes[3] === 0) this.commands++
      if (this.#ends('up', bytes)) return void server.write(this.#last('up', bytes), () => server.destroy())
      if (this.silent) return
      if (this.#over) return void client.destroy()
      if (this.#held) {
        this.#held.bytes.push(() => void server.write(bytes))
        return this.#held.arrived()
      }
      // Each writing transaction records its outcome last; compound statements are theirs.
      writes ||= bytes.includes('INSERT INTO outcomes') || bytes.includes('BEGIN NOT ATOMIC')
      const commits = isCommit(bytes)
      const cut = commits && (writes || this.cut !== 'last') ? this.cut : 'none'
      if (commits) writes = false
      if (cut === 'none') return void server.write(bytes)
      this.cut = 'none'
      this.#over = cut === 'last'
      if (this.#over) return void server.write(bytes)
      if (cut === 'after') {
        whole = wholeAnswers()
        server.write(bytes)
        return
      }
      if (cut === 'late') this.deliver = () => void server.end(bytes)
      else server.destroy()
      client.removeAllListeners('close').destroy()
    })
    server.on('data', (bytes) => {
      if (this.silent) return
      if (this.#ends('down', bytes)) return void client.write(this.#last('down', bytes), () => client.destroy())
      if (whole !== undefined) {
        if (whole(bytes)) client.destroy()
      } else answers = answers.then(() => this.#lag()).then(() => void client.write(bytes))
    })
    client.on('close', () => {
      this.closed++
      server.destroy()
    })
    server.on('close', () => client.destroy())
  }

  #ends(way: 'up' | 'down', { length }: Buffer): boolean {
    if (length > this.left[way]) return true
    this.left[way] -= length
    return false
  }

  #last(way: 'up' | 'down', bytes: Buffer): Buffer {
    const last = bytes.subarray(0, this.left[way])
    this.left[way] = Number.POSITIVE_INFINITY
    return last
  }

  async #lag(): Promise<void> {
    if (this.lagMilliseconds > 0) await delay(this.lagMilliseconds)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
