import { Type } from 'typebox'
import { boolean, integer, text } from '../../../field.ts'

/** The body of routes that take no fields. */
export const noFields = Type.Object({})

/** Fields with the same meaning in several routes. */
export const contextField = text({ about: 'Derivation context of derived keys, in base64.' })
export const nonceField = text({
  about: 'in base64: the IV of managed keys, and 12 bytes for convergent keys of version 1; other keys make their own.',
})
export const encryptingVersionField = integer({ about: 'The version to encrypt with; 0 or absent is the latest.' })
export const certifiedVersionField = integer({ about: 'The version of the key; 0 or absent is the latest.' })
/** May also be the last segment of the path. */
export const exportedVersionField = text({ about: 'latest, N or vN; absent is every version.' })
/** Later versions of Vault choose between OAEP and PKCS#1 v1.5 by it. */
export const paddingField = text({ about: 'For RSA: oaep, which is all there is.' })

/** Attributes of a key that is created or imported. */
export const keyFields = {
  derived: boolean({ about: 'Whether every use derives a key from a context.' }),
  exportable: boolean({ about: 'Whether the key may be exported; never to be undone.' }),
  allow_plaintext_backup: boolean({ about: 'Whether the key may be backed up; never to be undone.' }),
}
