import { Type } from 'typebox'
import { writePem } from '../../../crypto/pem.ts'
import { traditionalForm } from '../../../crypto/privatekey.ts'
import type { Data } from '../../../route.ts'

/** A private key in the requested form. */
export interface PrivateKey {
  readonly type: string
  readonly pem: string
  readonly der: Buffer
}

/** The form of a private key: `pkcs8`, or anything else for the form of its own type. */
export type PrivateKeyFormat = string | undefined

/**
 * A private key for an answer: PKCS#1 or SEC 1 unless PKCS#8 is requested; Ed25519 has no other form.
 * @param type rsa, ec or ed25519
 */
export function privateKeyOf(pkcs8: Buffer, type: string, format?: PrivateKeyFormat): PrivateKey {
  const { label, der } = format === 'pkcs8' ? { label: 'PRIVATE KEY', der: pkcs8 } : traditionalForm(pkcs8)
  return { type, pem: writePem(label, der), der }
}

/** The members of describePrivateKey, in answers that may have no key. */
export const optionalPrivateKey = {
  private_key: Type.Optional(Type.String()),
  private_key_type: Type.Optional(Type.String()),
}

/** The fields of a private key in an answer. @param asDer in base64, instead of PEM */
export const describePrivateKey = ({ type, pem, der }: PrivateKey, asDer: boolean): Data => ({
  private_key: asDer ? der.toString('base64') : pem,
  private_key_type: type,
})
