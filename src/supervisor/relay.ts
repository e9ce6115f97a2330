import type { VersionMessage } from '../workload.ts'
import type { Recipient } from './messages.ts'

interface Peer extends Recipient {
  /** Under which it registered for coherence. */
  readonly incarnations: readonly string[]
}

/** Relays messages about coherence between workers. */
export class Relay<P extends Peer> {
  readonly #serving: () => readonly P[]
  readonly #peers: () => readonly P[]
  /** Incarnations of ended processes, kept until a worker says that their registrations are gone. */
  readonly #departed = new Set<string>()

  /**
   * @param serving the workers that take requests
   * @param peers all that may still answer from a cache, including those being drained
   */
  constructor(serving: () => readonly P[], peers: () => readonly P[]) {
    this.#serving = serving
    this.#peers = peers
  }

  /** A written version goes to every other worker, a learned one to its writer. */
  carry(sender: P, message: VersionMessage): void {
    for (const worker of this.#peers()) {
      const meant = message.kind === 'written' ? worker !== sender : worker.incarnations.includes(message.writer)
      if (meant) worker.send({ type: 'versions', message })
    }
  }

  /** Every worker polls, including those being drained. */
  poll(): void {
    for (const worker of this.#peers()) worker.send({ type: 'poll' })
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
