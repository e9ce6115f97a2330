import type { SharedLogPlace } from '../workload.ts'
import type { Recipient } from './messages.ts'

interface Peer extends Recipient {
  /** Under which it registered for coherence. */
  readonly incarnations: readonly string[]
  readonly sharedLog: SharedLogPlace | undefined
}

/** Messages to workers about the coherence of their caches. */
export class Relay<P extends Peer> {
  readonly #serving: () => readonly P[]
  readonly #peers: () => readonly P[]
  /** Incarnations of ended processes, kept until a worker says that their registrations are gone. */
  readonly #departed = new Set<string>()
  #turn = 0

  /**
   * @param serving the workers that take requests
   * @param peers all that may still answer from a cache, including those being drained
   */
  constructor(serving: () => readonly P[], peers: () => readonly P[]) {
    this.#serving = serving
    this.#peers = peers
  }

  /** A worker polls, and shares what it reads with the others; so does each that cannot share. */
  poll(): void {
    const alone = this.#peers().filter(({ sharedLog }) => sharedLog === undefined)
    const sharing = this.#serving().filter(({ sharedLog }) => sharedLog !== undefined)
    const next = sharing[this.#turn++ % sharing.length]
    for (const worker of next ? [...alone, next] : alone) worker.send({ type: 'poll' })
  }

  /** A process has ended that registered under these incarnations. */
  departed(incarnations: readonly string[]): void {
    for (const id of incarnations) this.#departed.add(id)
    this.remind()
  }

  /** Their registrations are gone. */
  forgotten(incarnations: readonly string[]): void {
    for (const id of incarnations) this.#departed.delete(id)
  }

  /** Tells one worker of all that are still registered. */
  remind(): void {
    if (this.#departed.size > 0) this.#serving()[0]?.send({ type: 'ended', ids: [...this.#departed] })
  }
}
