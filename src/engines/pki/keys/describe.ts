import type { KeyObject } from 'node:crypto'
import { Type } from 'typebox'
import type { Data } from '../../../route.ts'
import { keyIdentifierOf } from '../../../x509/certificate.ts'
import type { KeyRow } from '../authority/tables.ts'

/** The members of describeKey. */
export const keyAnswer = { key_id: Type.String(), key_name: Type.String(), key_type: Type.String() }

/** A key as answers describe it. */
export const describeKey = ({ id, name, type }: KeyRow): Data => ({
  key_id: id,
  key_name: name ?? '',
  key_type: type,
})

/** The key identifier in the key's certificates, as hexadecimal bytes with colons. */
export function subjectKeyIdOf(publicKey: KeyObject): string {
  const identifier = keyIdentifierOf(publicKey.export({ format: 'der', type: 'spki' }))
  return identifier.toString('hex').replace(/..(?=.)/g, '$&:')
}
