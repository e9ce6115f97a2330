import { LRUCache } from 'lru-cache'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import { LiveHandle } from '../../hsm/livehandle.ts'
import type { MaybePromise } from '../../route.ts'
import type { Material } from '../material.ts'

/** A live object, and the length of the blob that it came from; a token object has none. */
interface LiveMaterial {
  readonly handle: LiveHandle
  readonly blobBytes: number | undefined
}

/**
 * The live objects of materials in the token: at most `limit`, the least recently used one is dropped after its last
 * use. Bounded, because each costs the process about 8 kB (SoftHSM); cached, because an unwrap costs 50 to 335 µs.
 */
export class Handles {
  readonly #hsm: Hsm
  readonly #load: (material: Material) => Promise<Handle>
  readonly #live: LRUCache<string, LiveMaterial>

  constructor(options: { hsm: Hsm; limit: number; load: (material: Material) => Promise<Handle> }) {
    this.#hsm = options.hsm
    this.#load = options.load
    this.#live = new LRUCache({ max: options.limit, dispose: ({ handle }) => handle.drop() })
  }

  /** Runs work on the material's live handle; synchronous when it is there and work is. */
  use<T>(material: Material, work: (handle: Handle) => MaybePromise<T>): MaybePromise<T> {
    const live = this.#live.get(material.id)
    // A secret that was padded since is another object, though the same key.
    const same = live !== undefined && live.blobBytes === material.row.blob?.length
    return (same ? live.handle : this.#open(material)).use(work)
  }

  /** The material is gone, or its object must be loaded again. */
  drop(id: string): void {
    this.#live.delete(id)
  }

  get size(): number {
    return this.#live.size
  }

  close(): void {
    this.#live.clear()
  }

  #open(material: Material): LiveHandle {
    // A token object is not ours to destroy when the cache forgets it.
    const handle = new LiveHandle(this.#hsm, () => this.#load(material), material.row.residence !== 'token')
    this.#live.set(material.id, { handle, blobBytes: material.row.blob?.length })
    return handle
  }
}
