import { ApiError, badRequest } from '../../../errors.ts'
import { algorithms } from '../../../keys/algorithms.ts'
import { ignoreNonce } from '../input/nonce.ts'
import type { KeyTemplate } from '../ring/newkey.ts'
import { checkVersionToMake } from '../ring/versions.ts'
import { readEncryptionInput } from './encrypt.ts'
import type { ParameterFields } from './parameters.ts'

/** The fields of an encryption that decide on the key made for it. */
export interface UpsertInput extends ParameterFields {
  readonly plaintext?: string | undefined
  readonly type?: string | undefined
  readonly convergent_encryption?: boolean | undefined
}

/**
 * The key that encrypt makes when it is missing: one for all items, which must agree on it.
 * @throws ApiError 400 when they do not agree, or an upsert cannot make such a key
 */
export function upsertOf(items: readonly UpsertInput[]): Omit<KeyTemplate, 'name'> {
  const type = common(items, 'type', ({ type }) => type || 'aes256-gcm96')
  const convergent = common(items, 'convergent_encryption', (item) => item.convergent_encryption ?? false)
  const derived = Boolean(items[0]?.context)
  if (convergent && !derived) {
    throw badRequest('convergent encryption requires derivation to be enabled, so context is required')
  }
  const algorithm = algorithms.get(type)
  if (algorithm?.aead) return { type, derived, convergent }
  // Of the other types, the reference knows only those of ECDSA here.
  const known = algorithm !== undefined && type.startsWith('ecdsa-')
  throw badRequest(known ? `key type ${type} not supported for this operation` : `unknown key type ${type}`)
}

function common<T>(items: readonly UpsertInput[], field: string, of: (item: UpsertInput) => T): T {
  const wanted = of(items[0] ?? {})
  if (items.every((item) => of(item) === wanted)) return wanted
  throw badRequest(`${field} should be the same in all the request blocks: one key is made for them`)
}

/** The refusal of an input that the first version of a new key could not encrypt. */
export function refusalOf(input: UpsertInput): ApiError | undefined {
  try {
    const { plaintext, derivation, version, nonce } = readEncryptionInput(input)
    plaintext.fill(0)
    // Base64 of line breaks alone.
    if (derivation?.length === 0) {
      throw badRequest('context must not be empty: leave it out for a key that is not derived')
    }
    checkVersionToMake({ latestVersion: 1, minEncryptionVersion: 0 }, version, 'encryption')
    ignoreNonce(nonce, () => {})
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}
