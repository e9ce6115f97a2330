import type { Hsm } from '../../hsm/hsm.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import type { Changes } from '../../store/table.ts'
import { type Rewrapped, rewrap } from '../cluster/rewrapping.ts'
import type { Kek, Keks } from '../kek/keks.ts'
import { type Blobs, blobTemplate } from '../live/blobs.ts'
import { pad, paddedBytes } from '../making/padding.ts'
import { withSecret, wrapSecret } from '../making/secret.ts'
import { Material } from '../material.ts'
import { type MaterialRow, materialsTable } from '../tables.ts'
import { NoMaterial } from './materials.ts'

export interface OpeningOptions {
  readonly hsm: Hsm
  readonly database: Database
  readonly keks: Keks
  readonly blobs: Blobs
}

/** Bytes that RFC 5649 adds to a key, besides padding it to a multiple of 8. */
const wrapOverhead = 8

/** Bytes of a wrapped HMAC secret as the token has it, padded by us (padding.ts) or by the token. */
export const heldBytes = ({ blob }: MaterialRow): number => (blob === null ? 0 : blob.length - wrapOverhead)

/** The key that a secret belongs to. */
export interface SecretOwner {
  /**
   * Keeps others from changing the key; called first in the transaction. @throws ApiError 400 if the key forbids it now
   */
  lock(tx: Transaction): Promise<void>
  /** Tells caches that the key has changed. */
  touch(tx: Transaction): void
}

/**
 * HMAC secrets that the token cannot serve as they are: rewrapped inside the token by the open KEK (those that may
 * leave stay under the export KEK), padded in memory if they are short, and from then on shown as opened.
 */
export class Opening {
  readonly #options: OpeningOptions
  readonly #running = new Map<string, Promise<Material>>()

  constructor(options: OpeningOptions) {
    this.#options = options
  }

  /**
   * The material as one that may be opened. Concurrent callers share the work.
   * @param owner the key that the secret belongs to, used in each run of the transaction
   * @throws NoMaterial when it was removed meanwhile
   */
  open(material: Material, owner: SecretOwner): Promise<Material> {
    const running = this.#running.get(material.id)
    if (running !== undefined) return running
    const opening = this.#open(material, owner).finally(() => this.#running.delete(material.id))
    this.#running.set(material.id, opening)
    return opening
  }

  async #open(material: Material, owner: SecretOwner): Promise<Material> {
    let current = material
    while (!isOpen(current.row)) current = new Material(await this.#store(current, owner))
    return current
  }

  /** @returns the row afterwards: not opened yet if somebody else has changed it meanwhile */
  async #store(material: Material, owner: SecretOwner): Promise<MaterialRow> {
    const { database, keks } = this.#options
    const { id, row } = material
    const materials = database.table(materialsTable)
    const changes = await this.#changes(material)
    return database.transaction(async (tx) => {
      await owner.lock(tx)
      const found = await materials.get(tx, id)
      if (found === undefined) throw new NoMaterial(`there is no material ${id}`)
      if (found.rev !== row.rev || (changes.kek && !(await keks.mayStore(tx, changes.kek)))) return found
      owner.touch(tx)
      tx.touch(materialsTable.name, id)
      return materials.update(tx, found, changes)
    })
  }

  /** The token's part, before the transaction. */
  #changes(material: Material): Promise<Changes<typeof materialsTable>> {
    const { hsm, keks, blobs } = this.#options
    return blobs.under(material, async (from, blob) => {
      const closed = from.row.purpose === 'use'
      const to = closed ? await keks.active('open') : from
      const rewrapped = closed ? await rewrap(hsm, from, to, blob, blobTemplate(material)) : undefined
      const filled =
        heldBytes(material.row) < paddedBytes
          ? await this.#fillUp(to, rewrapped?.blob ?? blob, material.row.sizeBytes)
          : rewrapped
      return { ...filled, residence: 'enveloped', everPlaintext: true }
    })
  }

  /** The secret is briefly in memory. */
  #fillUp(kek: Kek, blob: Buffer, sizeBytes: number): Promise<Rewrapped> {
    const { hsm } = this.#options
    return withSecret(hsm, kek, blob, async (secret) => {
      const padded = pad(secret.subarray(0, sizeBytes))
      try {
        const filled = await wrapSecret(hsm, kek, padded)
        return { blob: filled, kek: kek.row.id, mechanism: hsm.capabilities.kwp }
      } finally {
        padded.fill(0)
      }
    })
  }
}

const isOpen = (row: MaterialRow): boolean =>
  row.residence === 'enveloped' && row.everPlaintext && heldBytes(row) >= paddedBytes
