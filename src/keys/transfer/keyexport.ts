import { readFirst } from '../../crypto/der.ts'
import { unwrapKey, wrapKey } from '../../crypto/keywrap.ts'
import { wiping } from '../../crypto/wiping.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Pair } from '../algorithms/algorithm.ts'
import { type Blobs, blobTemplate } from '../live/blobs.ts'
import { parsePair, wipePair, writePkcs8 } from '../making/pair.ts'
import { lendTransport, withTransport } from '../making/transport.ts'
import type { Material } from '../material.ts'

/** A key in clear, lent for one use. */
export type PlaintextKey =
  | { readonly kind: 'secret'; readonly secret: Buffer }
  | { readonly kind: 'pair'; readonly pair: Pair }

/**
 * Keys on their way out: for export, plaintext backup and byok-export. Only a key under the export KEK may leave: that
 * is a property of its blob.
 */
export class KeyExport {
  readonly #hsm: Hsm
  readonly #blobs: Blobs

  constructor({ hsm, blobs }: { hsm: Hsm; blobs: Blobs }) {
    this.#hsm = hsm
    this.#blobs = blobs
  }

  /** Opens a key for one use and wipes it. @throws Error for a key that may not leave: the caller checks that first */
  async open<T>(material: Material, use: (key: PlaintextKey) => T | Promise<T>): Promise<T> {
    const { algorithm } = material
    await this.#checkLeaves(material)
    if (algorithm.class === 'secret') {
      return this.#blobs.open(material, (secret) => use({ kind: 'secret', secret }))
    }
    const lend = async (pair: Pair): Promise<T> => {
      try {
        return await use({ kind: 'pair', pair })
      } finally {
        wipePair(pair)
      }
    }
    if (material.row.residence === 'enveloped') {
      return this.#blobs.open(material, (seed) => lend(algorithm.privateKey.read(seed, '')))
    }
    return lendTransport(this.#hsm, async (transport) => {
      // Some tokens pad keys with zeros before they wrap them.
      const pkcs8 = unwrapKey(transport, await this.#wrapInToken(material, transport))
      if (pkcs8 === undefined) throw new Error(`the token does not wrap ${algorithm.name} keys as RFC 5649 says`)
      try {
        return await lend(parsePair(algorithm, readFirst(pkcs8)))
      } finally {
        pkcs8.fill(0)
      }
    })
  }

  /** Lends a new AES-256 key to wrap another under, from the token's random generator, and wipes it. */
  lendTransport<T>(use: (transport: Buffer) => Promise<T>): Promise<T> {
    return lendTransport(this.#hsm, use)
  }

  /**
   * The key wrapped under an AES-256 key (RFC 5649): raw, or as PKCS#8. A key that the token can wrap at its exact
   * length is never in memory.
   */
  async wrapUnder(material: Material, transport: Buffer): Promise<Buffer> {
    await this.#checkLeaves(material)
    const { row, algorithm } = material
    if (row.residence === 'wrapped' && row.sizeBytes % 8 === 0 && algorithm.aead) {
      return this.#wrapInToken(material, transport)
    }
    return this.open(material, (key) => {
      if (key.kind === 'secret') return wrapKey(transport, key.secret)
      const pkcs8 = writePkcs8(key.pair)
      return wiping(pkcs8, () => wrapKey(transport, pkcs8))
    })
  }

  #wrapInToken(material: Material, transport: Buffer): Promise<Buffer> {
    const template = { ...blobTemplate(material), extractable: true, usages: [] }
    return this.#blobs.under(material, async (kek, blob) => {
      const key = await kek.unwrap(blob, template)
      try {
        return await withTransport(this.#hsm, transport, async (handle) =>
          this.#hsm.wrap(handle, this.#hsm.capabilities.kwp, key),
        )
      } finally {
        await this.#hsm.destroy(key)
      }
    })
  }

  async #checkLeaves(material: Material): Promise<void> {
    const { purpose } = await this.#blobs.under(material, (kek) => kek.row)
    if (purpose !== 'export') throw new Error(`material ${material.id} is under the ${purpose} KEK and never leaves`)
  }
}
