import { badRequest } from '../../errors.ts'
import { CKK } from '../../hsm/constants.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { MaybePromise } from '../../route.ts'
import type { PairAlgorithm } from '../algorithms/algorithm.ts'
import { type Kek, KekAbsent, type Keks } from '../kek/keks.ts'
import { privateTemplate } from '../making/making.ts'
import { isFilledUp } from '../making/padding.ts'
import { withSecret } from '../making/secret.ts'
import type { Material } from '../material.ts'
import { provePrivate } from './proof.ts'

/** Whether the blob is a private key's bare seed rather than the key itself. */
const isSeed = ({ algorithm, row }: Material): boolean => algorithm.class === 'private' && row.residence === 'enveloped'

function pairOf({ algorithm }: Material): PairAlgorithm {
  if (algorithm.class === 'private') return algorithm
  throw new Error(`keys of type ${algorithm.name} are no pairs`)
}

/** Whether the token can hold the key as an object; otherwise the host opens it for each use. */
export function heldByToken(hsm: Hsm, material: Material): boolean {
  if (!hsm.capabilities.supports(material.algorithm.using)) return false
  if (!isSeed(material)) return true
  const { creation } = pairOf(material).privateKey
  return creation !== undefined && hsm.capabilities.supports(creation.ability)
}

/** Opens the blobs of materials for use. */
export class Blobs {
  readonly #hsm: Hsm
  readonly #keks: Keks
  readonly #reread: (id: string) => Promise<Material | undefined>

  /** @param reread gives a material as the database has it now */
  constructor(hsm: Hsm, keks: Keks, reread: (id: string) => Promise<Material | undefined>) {
    this.#hsm = hsm
    this.#keks = keks
    this.#reread = reread
  }

  /** Loads a key into the token: sensitive, not extractable, and with its type's usages only. */
  async load(material: Material): Promise<Handle> {
    if (material.row.residence === 'token') return residentKey(this.#hsm, material)
    const template = blobTemplate(material)
    const { algorithm, row } = material
    if (isSeed(material)) {
      const pair = pairOf(material)
      const whole = { ...privateTemplate(pair), ...pair.privateKey.creation?.attributes }
      return this.open(material, (seed) => this.#hsm.create({ ...whole, value: seed }))
    }
    if (algorithm.mac && isFilledUp(this.#hsm.capabilities, row.sizeBytes)) {
      return this.open(material, (secret) => this.#hsm.create({ ...template, value: secret }))
    }
    return this.under(material, (kek, blob) => kek.unwrap(blob, template))
  }

  /** Opens a secret for one use, at its true length; it is wiped when the use is over. @throws ClosedSecret */
  open<T>(material: Material, use: (secret: Buffer) => T | Promise<T>): Promise<T> {
    const { sizeBytes } = material.row
    return this.under(material, (kek, blob) =>
      withSecret(this.#hsm, kek, blob, (filled) => use(filled.subarray(0, sizeBytes))),
    )
  }

  /**
   * Works with the blob and the KEK it is under. A cached row may name a KEK that was destroyed since: rotation has put
   * the blob under another.
   */
  async under<T>(material: Material, use: (kek: Kek, blob: Buffer) => MaybePromise<T>): Promise<T> {
    try {
      return await this.#under(material, use)
    } catch (error) {
      if (!(error instanceof KekAbsent)) throw error
      const now = await this.#reread(material.id)
      if (now === undefined || now.row.kek === material.row.kek) throw error
      return this.#under(now, use)
    }
  }

  async #under<T>({ row }: Material, use: (kek: Kek, blob: Buffer) => MaybePromise<T>): Promise<T> {
    if (row.blob === null || row.kek === null) throw new Error(`material ${row.id} has no blob`)
    return use(await this.#keks.get(row.kek), row.blob)
  }
}

/** The template for unwrapping a blob. */
export function blobTemplate(material: Material): KeyTemplate {
  const { algorithm, row } = material
  if (isSeed(material)) return { class: 'secret', keyType: CKK.GENERIC_SECRET, usages: [] }
  if (algorithm.class === 'secret') {
    return { class: 'secret', keyType: algorithm.keyType, usages: algorithm.usages }
  }
  return { ...privateTemplate(algorithm, row.part), ...algorithm.privateKey.unwrapping?.(material.publicKey) }
}

/** @throws ApiError 400 when the token that had the key is gone, or is another node's */
async function residentKey(hsm: Hsm, material: Material): Promise<Handle> {
  const { ckaId: id, version, tokenSerial } = material.row
  if (id === null) throw badRequest('this key lies in a token of its own and is not used this way')
  const found = await hsm.find({ class: 'private', id, token: true })
  const [handle] = found
  const { label, serial } = hsm.token
  if (handle === undefined && tokenSerial !== null && tokenSerial !== serial) {
    throw badRequest(
      `version ${version} of this key lives in the token with serial ${tokenSerial} alone, not in the token ${label} of this server`,
    )
  }
  if (handle === undefined) {
    throw badRequest(`version ${version} of this key lived in one token alone, and the token ${label} does not hold it`)
  }
  if (found.length > 1) throw new Error(`the token ${label} holds ${found.length} objects where one key should be`)
  await provePrivate(hsm, handle, material)
  return handle
}
