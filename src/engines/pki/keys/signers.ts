import type { AsymmetricKeyDetails } from 'node:crypto'
import { after } from '../../../after.ts'
import type { Hash } from '../../../crypto/hashes.ts'
import { signatureAlgorithmOf } from '../../../crypto/signaturealgorithm.ts'
import type { ManagedKeys } from '../../../keys/managed/managedkeys.ts'
import type { Material } from '../../../keys/material.ts'
import type { Certification, CertificationSigner } from '../../../keys/use/certification.ts'
import type { MaybePromise } from '../../../route.ts'
import type { Certificate } from '../../../x509/certificate.ts'
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

  /**
   * @param certificate of the issuer whose key it is, if an issuer signs: its algorithms are those that it allows
   * @throws ApiError 400 or 403 if the key's managed key is gone or not allowed for this mount
   */
  of(key: KeyRow, certificate?: Certificate): MaybePromise<CertificationSigner> {
    const signer = after(this.#options.material(key), (material) => this.over(key.mount, material, key.managedKey))
    return certificate === undefined ? signer : after(signer, (one) => allowedBy(certificate, one))
  }

  /** A key whose row is not stored yet. @param managedKey uuid of the managed key, if it is one */
  over(mount: string, material: Material, managedKey: string | null): MaybePromise<CertificationSigner> {
    const { certification, managed } = this.#options
    if (managedKey === null) return certification.of(material)
    return managed.certifier({ mount, managedKey, pinned: material })
  }
}

/** A certificate of a key of type id-RSASSA-PSS verifies only such signatures (RFC 4055 section 1.2). */
function allowedBy(certificate: Certificate, signer: CertificationSigner): CertificationSigner {
  const key = certificate.publicKey()
  if (key.asymmetricKeyType !== 'rsa-pss') return signer
  const wanted = key.asymmetricKeyDetails ?? {}
  const algorithms = signer.algorithms.filter((name) => {
    const { pss, hash } = signatureAlgorithmOf(name)
    return pss && hash !== undefined && isAllowed(hash, wanted)
  })
  return { ...signer, algorithms }
}

/** Salts of our signatures are as long as the hash, and MGF1 uses the same. Parameters may be absent. */
const isAllowed = ({ node, bytes }: Hash, wanted: AsymmetricKeyDetails): boolean =>
  [wanted.hashAlgorithm ?? node, wanted.mgf1HashAlgorithm ?? node].every((name) => name === node) &&
  (wanted.saltLength ?? 0) <= bytes
