import { after } from '../../../after.ts'
import type { ManagedKeys } from '../../../keys/managed/managedkeys.ts'
import type { Material } from '../../../keys/material.ts'
import type { Certification, CertificationSigner } from '../../../keys/use/certification.ts'
import type { MaybePromise } from '../../../route.ts'
import type { KeyRow } from '../authority/tables.ts'

export interface SignersOptions {
  readonly certification: Certification
  readonly managed: ManagedKeys
  material(key: KeyRow): MaybePromise<Material>
}

/** Signers with the keys of authorities. */
export class Signers {
  readonly #options: SignersOptions

  constructor(options: SignersOptions) {
    this.#options = options
  }

  /** @throws ApiError 400 or 403 if the key's managed key is gone or not allowed for this mount */
  of(key: KeyRow): MaybePromise<CertificationSigner> {
    return after(this.#options.material(key), (material) => this.over(key.mount, material, key.managedKey))
  }

  /** A key whose row is not stored yet. @param managedKey uuid of the managed key, if it is one */
  over(mount: string, material: Material, managedKey: string | null): MaybePromise<CertificationSigner> {
    const { certification, managed } = this.#options
    if (managedKey === null) return certification.of(material)
    return managed.certifier({ mount, managedKey, pinned: material })
  }
}
