import type { Socket } from 'node:net'
import { type Inherited, ListeningSocket } from './listening.ts'

/** A process that serves connections. */
export interface Taker {
  readonly id: number
  /** Whether it has taken the last connection given to it. */
  readonly free: boolean
  /** Whether it has this listener, and room for connections. */
  serves(address: string): boolean
  give(address: string, connection: Socket): void
}

/** The unix sockets whose files are removed with them. Another server may have inherited ours, or we its. */
export type Removal = 'all' | 'bound here' | 'none'

/** Per address. Each costs a descriptor, and the client of the last will long have given up by its turn. */
const mostWaitingConnections = 10_000

/**
 * The listening sockets of a node. Connections go to its processes in turn, each getting its next one when it has taken
 * the last: a hung process holds up one connection. The sockets outlive every process, so that connections meanwhile
 * wait instead of being refused.
 */
export class Acceptor {
  readonly #takers: () => readonly Taker[]
  readonly #inherited: Map<string, Inherited>
  readonly #mostWaiting: number
  readonly #sockets = new Map<string, ListeningSocket>()
  /** By address; no list is empty. */
  readonly #waiting = new Map<string, Socket[]>()
  #lastTaker = 0
  #turn: Promise<void> = Promise.resolve()
  #closed: Removal | undefined

  /**
   * @param takers those that serve now
   * @param inherited sockets by the address of their listener, which are not to be bound
   * @param mostWaiting waiting connections of one address; further ones are closed
   */
  constructor(
    takers: () => readonly Taker[],
    inherited: ReadonlyMap<string, Inherited> = new Map(),
    mostWaiting = mostWaitingConnections,
  ) {
    this.#takers = takers
    this.#inherited = new Map(inherited)
    this.#mostWaiting = mostWaiting
  }

  /** Whether anything listens. */
  get open(): boolean {
    return this.#sockets.size > 0
  }

  /** By listener, to be passed on. */
  get sockets(): ReadonlyMap<string, ListeningSocket> {
    return this.#sockets
  }

  /**
   * Listens at these addresses and at no others.
   * @throws Error of the first that cannot be bound; those before it listen
   */
  listen(addresses: readonly string[]): Promise<void> {
    const listening = this.#turn.then(() => this.#listen(addresses))
    this.#turn = listening.catch(() => undefined)
    return listening
  }

  async #listen(addresses: readonly string[]): Promise<void> {
    for (const address of this.#sockets.keys()) if (!addresses.includes(address)) this.#drop(address, 'all')
    const missing = addresses.filter((address) => !this.#sockets.has(address))
    // Inherited ones last: another server has them too, and keeps its clients if a new address cannot be bound.
    const isInherited = (address: string) => Number(this.#inherited.has(address))
    for (const address of missing.sort((one, other) => isInherited(one) - isInherited(other))) {
      if (this.#closed) return
      const opened = await ListeningSocket.open(address, this.#inherited.get(address), (connection) =>
        this.#accept(address, connection),
      )
      this.#inherited.delete(address)
      this.#sockets.set(address, opened)
      if (this.#closed) this.#drop(address, this.#closed)
    }
  }

  /** A process serves, or has taken its connection: gives waiting connections to free processes. */
  distribute(): void {
    for (const [address, queue] of this.#waiting) {
      const taker = this.#nextTaker(address)
      const connection = taker && queue.shift()
      if (connection === undefined) continue
      // Moved behind the other addresses; the loop comes to it again.
      this.#waiting.delete(address)
      if (queue.length > 0) this.#waiting.set(address, queue)
      taker?.give(address, connection)
    }
  }

  /** The process that was given the connection could not take it, or ended first: nothing of it has been read. */
  returned(address: string, connection: Socket): void {
    if (this.#sockets.has(address)) this.#accept(address, connection)
    else this.#giveAway(address, [connection])
  }

  /** Accepts no more and gives away the waiting connections. */
  close(removal: Removal): void {
    this.#closed = removal
    for (const address of this.#sockets.keys()) this.#drop(address, removal)
  }

  #drop(address: string, removal: Removal): void {
    const socket = this.#sockets.get(address)
    this.#sockets.delete(address)
    socket?.close(removal === 'all' || (removal === 'bound here' && !socket.inherited))
    const queue = this.#waiting.get(address) ?? []
    this.#waiting.delete(address)
    this.#giveAway(address, queue)
  }

  /** Also to processes that are not free: there is no later chance. */
  #giveAway(address: string, connections: readonly Socket[]): void {
    const able = this.#takers().filter((taker) => taker.serves(address))
    connections.forEach((connection, index) => {
      const taker = able[index % able.length]
      if (taker) taker.give(address, connection)
      else connection.destroy()
    })
  }

  #accept(address: string, connection: Socket): void {
    const taker = this.#nextTaker(address)
    if (taker) {
      taker.give(address, connection)
      return
    }
    const queue = this.#waiting.get(address)
    if (queue === undefined) this.#waiting.set(address, [connection])
    else if (queue.length < this.#mostWaiting) queue.push(connection)
    else connection.destroy()
  }

  /** The free process whose turn it is. */
  #nextTaker(address: string): Taker | undefined {
    const takers = this.#takers().filter((taker) => taker.free && taker.serves(address))
    const taker = takers.find(({ id }) => id > this.#lastTaker) ?? takers[0]
    if (taker) this.#lastTaker = taker.id
    return taker
  }
}
