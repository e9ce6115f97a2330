import type { KeyObject } from 'node:crypto'
import type { Data } from '../../../route.ts'
import { keyIdentifierOf } from '../../../x509/certificate.ts'
import type { KeyRow } from '../authority/tables.ts'

/** A key as every answer about it shows it. */
export const describeKey = ({ id, name, type }: KeyRow): Data => ({
  key_id: id,
  key_name: name ?? '',
  key_type: type,
})

/** The key identifier that its certificates carry, as hexadecimal bytes with colons. */
export function subjectKeyIdOf(publicKey: KeyObject): string {
  const identifier = keyIdentifierOf(publicKey.export({ format: 'der', type: 'spki' }))
  return identifier.toString('hex').replace(/..(?=.)/g, '$&:')
}
