import type { Scheme } from '../algorithms/signature.ts'
import type { Material } from '../material.ts'
import { signatureOf } from './signer.ts'

/**
 * Whether the signature is the key's over the input. Public work, on the host.
 * @throws ApiError 400 when the key's type does not sign or a DER signature is malformed; a wrong signature is false
 */
export const verify = (material: Material, input: Uint8Array, signature: Uint8Array, scheme: Scheme): boolean =>
  signatureOf(material, 'verification').verify(material.publicKey, input, signature, scheme)
