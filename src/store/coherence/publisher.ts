import type { Coherence } from './coherence.ts'
import type { Versions } from './increments.ts'
import type { Look } from './look.ts'

/** Makes the commits of this process known: to itself, to the workers that share its log, and to other nodes. */
export class Publisher {
  readonly #coherence: Coherence
  readonly #log: string | undefined
  readonly #nudge: () => void
  #nudging = false

  /**
   * @param log the id of the shared log, if there is one
   * @param nudge makes other nodes poll
   */
  constructor(coherence: Coherence, log: string | undefined, nudge: () => void) {
    this.#coherence = coherence
    this.#log = log
    this.#nudge = nudge
  }

  /**
   * Publishes the versions of a commit.
   * @param look one that followed the COMMIT: a worker that registers later polls first, and that poll sees the commit
   * @returns the log whose readers need not acknowledge them
   */
  publish(versions: Versions, look?: Look): string | undefined {
    const log = this.#coherence.publish(versions) ? this.#log : undefined
    const reached = (registration: string, its: string | undefined): boolean =>
      registration === this.#coherence.registration || (log !== undefined && its === log)
    const all = look !== undefined && [...look.registrations].every(([registration, its]) => reached(registration, its))
    if (!all) this.#nudgeSoon()
    return log
  }

  /** Once for all commits of a turn of the event loop. */
  #nudgeSoon(): void {
    if (this.#nudging) return
    this.#nudging = true
    setImmediate(() => {
      this.#nudging = false
      this.#nudge()
    })
  }
}
