import type { ManagedKeys, Reference } from '../../../keys/managed/managedkeys.ts'
import { Material } from '../../../keys/material.ts'
import type { AuthorityKeys } from '../../../keys/materials/authoritykeys.ts'
import type { Draft } from '../../../keys/materials/draft.ts'
import type { Materials } from '../../../keys/materials/materials.ts'
import type { MaterialRow } from '../../../keys/tables.ts'
import type { CertificationSigner } from '../../../keys/use/certification.ts'
import type { Mount } from '../../../route.ts'
import type { KeyResidence } from '../authority/tables.ts'
import type { NewKey } from './keyrows.ts'
import { type KeyKind, kindOf } from './keytype.ts'
import type { Signers } from './signers.ts'

/** A new key that can already sign, with its private half if the caller is to get it. */
export interface PreparedKey extends NewKey {
  readonly signer: CertificationSigner
  /** PKCS#8; the caller wipes it. */
  readonly pkcs8: Buffer | undefined
}

interface NewKeysOptions {
  readonly authorityKeys: AuthorityKeys
  readonly materials: Materials
  readonly managed: ManagedKeys
  readonly signers: Signers
}

/** Makes keys for an authority, in the token and before any transaction. */
export class NewKeys {
  readonly #options: NewKeysOptions

  constructor(options: NewKeysOptions) {
    this.#options = options
  }

  /** A key made in the token, never shown. @throws ApiError 400 naming the rule or the missing mechanism */
  async generate(mount: Mount, kind: KeyKind, residence: KeyResidence, createdBy: string): Promise<PreparedKey> {
    const { algorithm } = kind
    const draft = await this.#options.authorityKeys.prepare({ algorithm, residence, createdBy })
    return this.#prepared(mount, draft, kind)
  }

  /** A managed key, made in its token if that is allowed. @throws ApiError 400 or 403 naming the rule */
  async managed(mount: Mount, reference: Reference, createdBy: string): Promise<PreparedKey> {
    const { id, draft } = await this.#options.managed.prepare(mount.uuid, reference, createdBy)
    const material = materialOf(draft)
    return this.#prepared(mount, draft, kindOf(material.publicKey), { managedKey: id })
  }

  /** A key whose private half is returned once, and is inaccessible afterwards. */
  async exported(mount: Mount, kind: KeyKind, residence: KeyResidence, createdBy: string): Promise<PreparedKey> {
    const { algorithm } = kind
    const { draft, pkcs8 } = await this.#options.authorityKeys.prepareExported({ algorithm, residence, createdBy })
    return this.#prepared(mount, draft, kind, { pkcs8 })
  }

  /** A key from outside. @param pkcs8 wiped by the caller @throws ApiError 400 naming its fault */
  async imported(pkcs8: Buffer, createdBy: string): Promise<NewKey> {
    const draft = await this.#options.authorityKeys.prepareImported(pkcs8, createdBy)
    return { draft, ...kindOf(materialOf(draft).publicKey), managedKey: null }
  }

  async #prepared(
    { uuid: mount }: Mount,
    draft: Draft,
    { type, bits }: Pick<KeyKind, 'type' | 'bits'>,
    { managedKey = null, pkcs8 }: { readonly managedKey?: string | null; readonly pkcs8?: Buffer } = {},
  ): Promise<PreparedKey> {
    const signer = await this.#options.signers.over(mount, materialOf(draft), managedKey)
    return { draft, type, bits, managedKey, signer, pkcs8 }
  }

  /** Removes a key that was made and not stored. Never rejects. */
  discard({ draft }: NewKey): Promise<void> {
    return this.#options.materials.abandon(draft)
  }
}

/** The material of a key whose row is not stored yet. */
const materialOf = ({ fields }: Draft): Material =>
  new Material({ ...fields, namespace: '', mount: '', owner: '', version: 1, rev: 0, epoch: 0 } as MaterialRow)
