import { writePem } from '../../../crypto/pem.ts'
import { traditionalForm } from '../../../crypto/privatekey.ts'
import type { Data } from '../../../route.ts'

/** A private key in the form that was asked for. */
export interface PrivateKey {
  readonly type: string
  readonly pem: string
  readonly der: Buffer
}

/** How a private key is written: `pkcs8`, or anything else for the form of its own type. */
export type PrivateKeyFormat = string | undefined

/**
 * A private key as answers carry it: PKCS#1 or SEC1 unless PKCS#8 is asked for; Ed25519 has no other form.
 * @param type rsa, ec or ed25519
 */
export function privateKeyOf(pkcs8: Buffer, type: string, format?: PrivateKeyFormat): PrivateKey {
  const { label, der } = format === 'pkcs8' ? { label: 'PRIVATE KEY', der: pkcs8 } : traditionalForm(pkcs8)
  return { type, pem: writePem(label, der), der }
}

/** What answers that hand a key out have of it. @param der in base64, instead of PEM */
export const describePrivateKey = ({ type, pem, der }: PrivateKey, asDer: boolean): Data => ({
  private_key: asDer ? der.toString('base64') : pem,
  private_key_type: type,
})
