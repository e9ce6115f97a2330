import { Type } from 'typebox'
import { after } from '../../../after.ts'
import { decodeField } from '../../../crypto/base64.ts'
import { wipedAfter } from '../../../crypto/wiping.ts'
import type { Data, MaybePromise } from '../../../route.ts'
import { ignoreNonce } from '../input/nonce.ts'
import { tag } from '../input/tagged.ts'
import { managedType } from '../ring/managedtype.ts'
import { versionToMake } from '../ring/versions.ts'
import { encryptDerived } from './derived.ts'
import { encryptManaged } from './managed.ts'
import type { Operation, VersionOperation } from './operation.ts'
import { type CipherParameters, type ParameterFields, readParameters } from './parameters.ts'
import { encryptRsa } from './rsa.ts'

/** The members of the answer of encrypt. */
export const ciphertextAnswer = { ciphertext: Type.String(), key_version: Type.Integer() }

export interface EncryptionInput extends CipherParameters {
  readonly plaintext: Buffer
}

/** @throws ApiError 400, as readParameters */
export function readEncryptionInput(
  fields: ParameterFields & { readonly plaintext?: string | undefined },
): EncryptionInput {
  const plaintext = decodeField('plaintext', fields.plaintext ?? '')
  return { plaintext, ...readParameters(fields) }
}

/** Encrypts the input of a request and wipes it. @throws as readEncryptionInput and encrypt do */
export function encryptInput(
  operation: Operation,
  fields: ParameterFields & { readonly plaintext?: string | undefined },
): MaybePromise<Data> {
  const input = readEncryptionInput(fields)
  try {
    return wipedAfter(input.plaintext, encrypt(operation, input))
  } catch (error) {
    input.plaintext.fill(0)
    throw error
  }
}

/**
 * Encrypts under the requested version. @returns the answer of encrypt, rewrap and datakey
 * @throws ApiError 400 when that version must not encrypt, the key type cannot, or an input is missing
 */
export function encrypt(operation: Operation, input: EncryptionInput): MaybePromise<Data> {
  const version = versionToMake(operation.ring, input.version, 'encryption')
  return after(payloadOf({ ...operation, version }, input), (payload) => ({
    ciphertext: tag(version.version, payload.toString('base64')),
    key_version: version.version,
  }))
}

function payloadOf(operation: VersionOperation, input: EncryptionInput): MaybePromise<Buffer> {
  const { context, ring, version, warn } = operation
  if (ring.key.derived) return encryptDerived(operation, input)
  if (ring.key.type === managedType) return encryptManaged(operation, { ...input, bytes: input.plaintext })
  ignoreNonce(input.nonce, warn)
  return after(context.material(version.material), (key) => {
    context.approval.warn(warn, key.algorithm)
    if (key.algorithm.oaep) return encryptRsa(context, key, input)
    const { plaintext, aad } = input
    return after(context.cipher.encrypt(key, { plaintext, aad }), ({ iv, sealed, warning }) => {
      if (warning) warn(warning)
      return Buffer.concat([iv, sealed])
    })
  })
}
