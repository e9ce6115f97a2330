import type { KeyObject } from 'node:crypto'
import { pointOf } from '../../crypto/edwards.ts'
import { writePem } from '../../crypto/pem.ts'
import { badRequest } from '../../errors.ts'
import type { Algorithm, ExportForm, Pair } from '../algorithms/algorithm.ts'
import { writePkcs8 } from '../making/pair.ts'
import type { PlaintextKey } from './keyexport.ts'

/** The requested form of an export: '' is the type's own. */
export type Format = '' | 'raw' | 'der' | 'pem'

/** @throws ApiError 400 for a form that keys of the type do not have */
export function checkFormat(algorithm: Algorithm, format: string): Format {
  if (format === '') return format
  if (format !== 'raw' && format !== 'der' && format !== 'pem') throw badRequest(`invalid format: ${format}`)
  const fits = algorithm.class === 'secret' ? format === 'raw' : format !== 'raw' || isPoint(algorithm)
  if (!fits) throw badRequest(`invalid format: ${format} is not a format of ${algorithm.name} keys`)
  return format
}

/** A private or secret key as text: base64, or PEM. */
export function privateText(key: PlaintextKey, form: ExportForm | undefined, format: Format): string {
  if (key.kind === 'secret') return key.secret.toString('base64')
  const { pair } = key
  if (format === 'der' || format === 'pem') {
    const pkcs8 = writePkcs8(pair)
    const text = format === 'der' ? pkcs8.toString('base64') : `${writePem('PRIVATE KEY', pkcs8)}\n`
    pkcs8.fill(0)
    return text
  }
  if (form === 'pkcs1') return `${writePem('RSA PRIVATE KEY', pair.inner)}\n`
  // The reference's has no newline at its end.
  if (form === 'sec1') return writePem('EC PRIVATE KEY', pair.inner)
  return seedAndPoint(pair)
}

/** The reference's 64 bytes: seed ‖ public key. */
function seedAndPoint({ inner, publicKey }: Pair): string {
  const both = Buffer.concat([inner, pointOf(publicKey)])
  const text = both.toString('base64')
  both.fill(0)
  return text
}

/** A public key as text: PEM or DER of its SPKI; an Ed25519 key is 32 bytes in base64. */
export function publicText(key: KeyObject, algorithm: Algorithm, format: Format): string {
  if (isPoint(algorithm) && (format === '' || format === 'raw')) return pointOf(key).toString('base64')
  const spki = key.export({ format: 'der', type: 'spki' })
  if (format === 'der') return spki.toString('base64')
  const text = writePem('PUBLIC KEY', spki)
  // As above.
  return algorithm.exports['signing-key'] === 'sec1' && format === '' ? text : `${text}\n`
}

/** Whether public keys of the type are bare points. */
const isPoint = ({ exports }: Algorithm): boolean => exports['public-key'] === 'point'
