import type { Recipient } from './messages.ts'

/** Relays messages about coherence between workers. */
export class Relay<P extends Recipient> {
  readonly #workers: () => readonly P[]
  readonly #nudging = new Set<P>()
  /** Incarnations of ended processes, kept until a worker says that their registrations are gone. */
  readonly #departed = new Set<string>()

  /** @param workers those that can receive messages now */
  constructor(workers: () => readonly P[]) {
    this.#workers = workers
  }

  /** A worker wrote: the others poll. Nudges of one turn of the event loop become one message to each worker. */
  nudge(writer: P): void {
    if (this.#nudging.size === 0) setImmediate(() => this.#spread())
    this.#nudging.add(writer)
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
    if (this.#departed.size > 0) this.#workers()[0]?.send({ type: 'ended', ids: [...this.#departed] })
  }

  #spread(): void {
    const [only, another] = this.#nudging
    this.#nudging.clear()
    for (const worker of this.#workers()) {
      if (another !== undefined || worker !== only) worker.send({ type: 'nudge' })
    }
  }
}
