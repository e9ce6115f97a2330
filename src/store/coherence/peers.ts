import type { Version, VersionMessage } from '../../workload.ts'
import type { Coherence } from './coherence.ts'
import type { Versions } from './increments.ts'
import type { Look } from './look.ts'
import type { Settlement } from './settlement.ts'

/** This process among the workers of its node: the others learn and acknowledge its commits without a poll. */
export class Peers {
  readonly #coherence: Coherence
  readonly #settlement: Settlement
  readonly #incarnation: string
  readonly #send: (message: VersionMessage) => void
  readonly #leaves = new Map<number, number>()
  /** Each change of a group by itself: a worker that has learned all of them need not read its leaves. */
  readonly #groups: Version[] = []

  constructor(options: {
    coherence: Coherence
    settlement: Settlement
    incarnation: string
    send: (message: VersionMessage) => void
  }) {
    this.#coherence = options.coherence
    this.#settlement = options.settlement
    this.#incarnation = options.incarnation
    this.#send = options.send
  }

  /**
   * Announces a commit of this process: it learns first, then the others are told. All commits of one turn share a
   * message.
   * @param look one that followed the COMMIT: a worker that registers later polls first, and that poll sees the commit
   */
  announce({ leaves, groups }: Versions, look?: Look): void {
    const own = this.#coherence.learn({ leaves, groups })
    if (look && [...look.registrations].every((id) => id === own)) return
    if (this.#leaves.size === 0) setImmediate(() => this.#tell())
    for (const [leaf, v] of leaves) this.#leaves.set(leaf, Math.max(v, this.#leaves.get(leaf) ?? 0))
    this.#groups.push(...groups)
  }

  hear(message: VersionMessage): void {
    const { writer, leaves } = message
    if (message.kind === 'learned') {
      this.#settlement.heard(message.registration, leaves)
      return
    }
    const registration = this.#coherence.learn(message)
    if (registration !== undefined) this.#send({ kind: 'learned', writer, registration, leaves })
  }

  #tell(): void {
    const leaves = [...this.#leaves]
    const groups = this.#groups.splice(0)
    this.#leaves.clear()
    this.#send({ kind: 'written', writer: this.#incarnation, leaves, groups })
  }
}
