import type { MaybePromise } from '../route.ts'
import { type Handle, StaleHandle } from './handle.ts'
import type { Hsm } from './hsm.ts'

/**
 * One key's place among the live objects of the token: empty until it is first used, filled once for concurrent
 * callers, and filled again when the token has forgotten the object (after it was lost, all handles are void).
 */
export class LiveHandle {
  readonly #hsm: Hsm
  readonly #load: () => Promise<Handle>
  readonly #owned: boolean
  #handle: Handle | undefined
  #loading: Promise<Handle> | undefined
  #dropped = false

  /** @param owned whether the object is destroyed with this; a token object outlives it */
  constructor(hsm: Hsm, load: () => Promise<Handle>, owned: boolean) {
    this.#hsm = hsm
    this.#load = load
    this.#owned = owned
  }

  /**
   * Runs one call on the live handle (the Hsm keeps it alive during the call). Synchronous if the handle is there and
   * the call is synchronous. It runs a second time if the token did not know the handle: the first run then had no
   * effect.
   */
  use<T>(work: (handle: Handle) => MaybePromise<T>): MaybePromise<T> {
    const handle = this.#live()
    if (handle === undefined) return this.#fill().then(work)
    try {
      const result = work(handle)
      return result instanceof Promise ? result.catch((error) => this.#again(error, handle, work)) : result
    } catch (error) {
      return this.#again(error, handle, work)
    }
  }

  /** Destroys the object when its last use is over; after that this holds nothing. */
  drop(): void {
    this.#dropped = true
    const handle = this.#handle
    this.#handle = undefined
    if (handle !== undefined) this.#destroy(handle)
  }

  #again<T>(error: unknown, stale: Handle, work: (handle: Handle) => MaybePromise<T>): Promise<T> {
    if (!(error instanceof StaleHandle)) throw error
    if (this.#handle === stale) this.#handle = undefined
    return this.#fill().then(work)
  }

  #live(): Handle | undefined {
    return this.#handle?.epoch === this.#hsm.epoch ? this.#handle : undefined
  }

  #fill(): Promise<Handle> {
    const handle = this.#live()
    if (handle !== undefined) return Promise.resolve(handle)
    this.#loading ??= this.#loaded().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #loaded(): Promise<Handle> {
    const handle = await this.#load()
    // Waiting callers still get their answers: their calls have begun before the next turn of the event loop.
    if (this.#dropped) setImmediate(() => this.#destroy(handle))
    else this.#handle = handle
    return handle
  }

  #destroy(handle: Handle): void {
    if (!this.#owned) return
    const destroyed = (async () => this.#hsm.destroy(handle))()
    // The session objects of a lost token are gone anyway.
    destroyed.catch(() => {})
  }
}
