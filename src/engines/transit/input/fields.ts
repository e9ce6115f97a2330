import { Type } from 'typebox'
import { boolean, integer, text, wholeBody } from '../../../field.ts'

/** The body of routes that take no fields. */
export const noFields = Type.Object({})

/** Fields with the same meaning in several routes. */
export const contextField = text({ about: 'Derivation context of derived keys, in base64.', longest: wholeBody })
export const nonceField = text({
  about: 'IV of managed keys, or 12 bytes for convergent keys of version 1, in base64; other keys make their own.',
})
export const encryptingVersionField = integer({ about: 'The version to encrypt with; 0 or absent is the latest.' })
export const certifiedVersionField = integer({ about: 'The version of the key; 0 or absent is the latest.' })
/** Also accepted as the last segment of the path. */
export const exportedVersionField = text({ about: 'latest, N or vN; absent is every version.' })
/** In later versions of Vault it chooses between OAEP and PKCS#1 v1.5. */
export const paddingField = text({ about: 'For RSA: oaep, the only scheme offered.' })

export const hmacInHsmOnlyField = boolean({
  about: 'Whether to refuse an HMAC that the token can make only with the secret in the server’s memory.',
})

/** Attributes of a key that is created or imported. */
export const keyFields = {
  derived: boolean({ about: 'Whether every use derives a key from a context.' }),
  exportable: boolean({ about: 'Whether the key may be exported; cannot be undone.' }),
  allow_plaintext_backup: boolean({ about: 'Whether the key may be backed up; cannot be undone.' }),
  hmac_in_hsm_only: hmacInHsmOnlyField,
}
