import type { KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Hash } from '../../crypto/hashes.ts'
import { unwrapKey } from '../../crypto/keywrap.ts'
import { badRequest } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Database } from '../../store/database.ts'
import { DuplicateRow } from '../../store/faults.ts'
import type { Algorithm } from '../algorithms/algorithm.ts'
import { algorithmOf } from '../algorithms.ts'
import type { Handles } from '../live/handles.ts'
import {
  badEnvelope,
  type IncomingKey,
  incomingEnvelope,
  incomingPair,
  incomingSecret,
  wrongSize,
} from '../making/incomingkey.ts'
import { readPair, wipePair } from '../making/pair.ts'
import type { Material } from '../material.ts'
import type { Draft, Specification } from '../materials/draft.ts'
import { type Materials, NoMaterial } from '../materials/materials.ts'
import { readSpki } from '../publickey.ts'
import { openEnvelope } from './envelope.ts'

const wrappingType = 'rsa-4096'
/** Of the modulus, and so of the first part of every ciphertext. */
export const wrappingBytes = 512

const mountsRemembered = 1000

/** A key in clear: a secret, a private key in PKCS#8, or an SPKI alone. */
export interface KeyBytes {
  readonly kind: 'secret' | 'pair' | 'public'
  readonly bytes: Buffer
}

/** The key to be made, without its source. */
type Wanted = Omit<Specification, 'given' | 'sizeBytes'>

export interface KeyImportOptions {
  readonly hsm: Hsm
  readonly database: Database
  readonly handles: Handles
  readonly materials: Materials
}

/** Keys that come in encrypted to a mount's wrapping key. */
export class KeyImport {
  readonly #options: KeyImportOptions
  readonly #making = new Map<string, Promise<Material>>()
  /** Ids of wrapping keys by mount: a mount has one as long as it lives. */
  readonly #ids = new LRUCache<string, string>({ max: mountsRemembered })

  constructor(options: KeyImportOptions) {
    this.#options = options
  }

  /** The mount's wrapping key, made in the token when it is first needed. @param mount uuid */
  async wrappingKey(mount: string, createdBy: string): Promise<Material> {
    const found = (await this.#remembered(mount)) ?? (await this.#find(mount))
    if (found !== undefined) {
      this.#ids.set(mount, found.row.id)
      return found
    }
    // Making one takes the token a second: concurrent requests share it.
    const making = this.#making.get(mount) ?? this.#make(mount, createdBy).finally(() => this.#making.delete(mount))
    this.#making.set(mount, making)
    return making
  }

  /**
   * A key from its ciphertext. Secrets that the token can hold go from the ciphertext into it; private keys and HMAC
   * secrets are briefly in memory, to be checked and padded, which no token does.
   * @param ciphertext longer than `wrappingBytes`
   * @returns the draft, and the true size of an HMAC key in bytes
   * @throws ApiError 400 with one text for any bad ciphertext; for a key of another type
   */
  async prepare(
    wanted: Wanted,
    { mount, hash, ciphertext }: { mount: string; hash: Hash; ciphertext: Buffer },
  ): Promise<Draft> {
    const { handles, hsm } = this.#options
    const wrappingKey = await this.wrappingKey(mount, wanted.createdBy)
    const envelope = await openEnvelope({ hsm, handles }, wrappingKey, hash, ciphertext)
    const algorithm = algorithmOf(wanted.algorithm)
    try {
      if (algorithm.aead) {
        const given = incomingEnvelope(envelope, algorithm.name, algorithm.sizeBytes)
        return await this.#options.materials.prepare({ ...wanted, given })
      }
      const key = unwrapKey(envelope.transport, envelope.blob)
      if (key === undefined) throw badEnvelope()
      try {
        return await this.#bring(wanted, 'imported', algorithm, key)
      } finally {
        key.fill(0)
      }
    } finally {
      envelope.transport.fill(0)
    }
  }

  /** A key with only its public half. */
  preparePublic(wanted: Wanted, publicKey: KeyObject): Promise<Draft> {
    return this.#options.materials.prepare({ ...wanted, given: publicKey })
  }

  /** A key from a backup. @throws ApiError 400 for one of another type */
  async restore(wanted: Wanted, { kind, bytes }: KeyBytes): Promise<Draft> {
    const algorithm = algorithmOf(wanted.algorithm)
    const pair = algorithm.class === 'private'
    if (kind === 'public' && pair) return this.preparePublic(wanted, readSpki(algorithm, bytes))
    if (kind !== (pair ? 'pair' : 'secret')) throw badRequest(`the backup has no key of type ${algorithm.name}`)
    return this.#bring(wanted, 'restored', algorithm, bytes)
  }

  /** @param key raw bytes of a secret, PKCS#8 of a pair */
  async #bring(wanted: Wanted, origin: IncomingKey['origin'], algorithm: Algorithm, key: Buffer): Promise<Draft> {
    const { materials } = this.#options
    if (algorithm.class === 'secret') {
      const { minimumBytes = algorithm.sizeBytes, maximumBytes = algorithm.sizeBytes } = algorithm.mac ?? {}
      if (key.length < minimumBytes || key.length > maximumBytes) throw wrongSize(algorithm.name, key.length)
      const given = incomingSecret(origin, key, algorithm)
      return materials.prepare({ ...wanted, sizeBytes: key.length, given })
    }
    const pair = await readPair(algorithm, key)
    try {
      return await materials.prepare({ ...wanted, given: incomingPair(origin, pair) })
    } finally {
      wipePair(pair)
    }
  }

  /** Undefined, too, when it is gone: the database went back to a time when the mount had another one or none. */
  async #remembered(mount: string): Promise<Material | undefined> {
    const id = this.#ids.get(mount)
    if (id === undefined) return undefined
    try {
      return await this.#options.materials.fetch(id)
    } catch (error) {
      if (!(error instanceof NoMaterial)) throw error
      this.#ids.delete(mount)
      return undefined
    }
  }

  async #find(mount: string): Promise<Material | undefined> {
    const { database, materials } = this.#options
    const [row] = await database.read((q) => materials.list(q, { key: mount, part: 'wrapping' }, { limit: 1 }))
    return row && materials.fetch(row.id)
  }

  async #make(mount: string, createdBy: string): Promise<Material> {
    const { database, materials } = this.#options
    const draft = await materials.prepare({ algorithm: wrappingType, exportable: false, part: 'wrapping', createdBy })
    try {
      const row = await database.transaction((tx) => materials.insert(tx, draft, { mount, key: mount, version: 1 }))
      return await materials.fetch(row.id)
    } catch (error) {
      if (!(error instanceof DuplicateRow)) throw error
      // Another process was faster.
      const found = await this.#find(mount)
      if (found === undefined) throw error
      return found
    }
  }
}
