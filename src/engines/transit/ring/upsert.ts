import { ApiError, badRequest } from '../../../errors.ts'
import { algorithms } from '../../../keys/algorithms.ts'
import { readPlain, type WishInput } from '../ciphers/plain.ts'
import { ignoreNonce } from '../input/nonce.ts'
import type { KeyTemplate } from './newkey.ts'
import { checkVersionToMake } from './versions.ts'

/** Of what is to be encrypted, what says which key is to be made for it. */
export interface UpsertInput extends WishInput {
  readonly plaintext?: string | undefined
  readonly type?: string | undefined
  readonly convergent_encryption?: boolean | undefined
}

/**
 * The key that encrypt makes when there is none: one for all items, so that they must ask for the same.
 * @throws ApiError 400 for what an upsert does not make
 */
export function upsertOf(items: readonly UpsertInput[]): Omit<KeyTemplate, 'name'> {
  const type = common(items, 'type', ({ type }) => type || 'aes256-gcm96')
  const convergent = common(items, 'convergent_encryption', (item) => item.convergent_encryption ?? false)
  const derived = Boolean(items[0]?.context)
  if (convergent && !derived) {
    throw badRequest('convergent encryption requires derivation to be enabled, so context is required')
  }
  const algorithm = algorithms.get(type)
  if (algorithm?.kind === 'aead') return { type, derived, convergent }
  throw badRequest(
    algorithm?.kind === 'ec' ? `key type ${type} not supported for this operation` : `unknown key type ${type}`,
  )
}

function common<T>(items: readonly UpsertInput[], field: string, of: (item: UpsertInput) => T): T {
  const wanted = of(items[0] ?? {})
  if (items.every((item) => of(item) === wanted)) return wanted
  throw badRequest(`${field} should be the same in all the request blocks: one key is made for them`)
}

/** Why the first version of a new key could not encrypt this. */
export function faultOf(input: UpsertInput): ApiError | undefined {
  try {
    const { version, nonce } = readPlain(input)
    checkVersionToMake({ latestVersion: 1, minEncryptionVersion: 0 }, version, 'encryption')
    ignoreNonce(nonce, () => {})
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}
