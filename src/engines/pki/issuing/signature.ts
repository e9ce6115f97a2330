import type { SignatureName } from '../../../crypto/signaturealgorithm.ts'
import { badRequest } from '../../../errors.ts'
import type { CertificationSigner } from '../../../keys/use/certification.ts'
import type { IssuerRow } from '../authority/tables.ts'

/** The signature settings of a role or request: bits of SHA-2 (0 means 256) and padding, both for RSA only. */
export interface SignatureWish {
  readonly signatureBits: number
  readonly usePss: boolean
}

const strongModulusBits = 2048

/** Keys of imported issuers may be weaker than those made here. */
export function warnOfWeakKey({ publicKey }: Pick<Able, 'publicKey'>, warn: (text: string) => void): void {
  if (publicKey.asymmetricKeyType !== 'rsa') return
  const bits = publicKey.asymmetricKeyDetails?.modulusLength ?? 0
  if (bits < strongModulusBits) warn(`The issuer's RSA key has ${bits} bits: signatures of such keys can be forged`)
}

const hashBits = [0, 256, 384, 512]

/** @throws ApiError 400 */
function checkSignatureBits(bits: number): void {
  if (!hashBits.includes(bits)) throw badRequest(`unsupported hash signature algorithm: ${bits}`)
}

type Able = Pick<CertificationSigner, 'publicKey' | 'algorithms'>

/** The algorithm of an issuer's signature. A key with only one padding uses that one. @throws ApiError 400 */
export function signatureFor({ publicKey, algorithms }: Able, wish: SignatureWish): SignatureName {
  const [usual] = algorithms
  if (usual === undefined) throw badRequest('the key of this issuer cannot sign certificates')
  if (publicKey.asymmetricKeyType !== 'rsa') return usual
  checkSignatureBits(wish.signatureBits)
  const bits = wish.signatureBits === 0 ? 256 : wish.signatureBits
  const named = (pss: boolean) => algorithms.find((name) => name === `SHA${bits}WithRSA${pss ? 'PSS' : ''}`)
  return named(wish.usePss) ?? named(!wish.usePss) ?? usual
}

/**
 * The algorithm for revocation lists and OCSP answers of an issuer: its revocation_signature_algorithm, with the other
 * padding if the key has only that; without one, the usual algorithm of the key.
 * @throws ApiError 400 for a key that cannot sign
 */
export function crlSignatureName(
  { revocationSignatureAlgorithm: wish }: Pick<IssuerRow, 'revocationSignatureAlgorithm'>,
  { algorithms }: Pick<Able, 'algorithms'>,
): SignatureName {
  const [usual] = algorithms
  if (usual === undefined) throw badRequest('the key of this issuer cannot sign revocation lists')
  const otherPadding = wish.endsWith('PSS') ? wish.slice(0, -'PSS'.length) : `${wish}PSS`
  return algorithms.find((name) => name === wish) ?? algorithms.find((name) => name === otherPadding) ?? usual
}
