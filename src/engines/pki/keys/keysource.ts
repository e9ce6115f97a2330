import { type Static, Type } from 'typebox'
import { badRequest } from '../../../errors.ts'
import { integer, text } from '../../../field.ts'
import type { Call } from '../../../route.ts'
import type { Authority } from '../authority/authority.ts'
import { keyOf } from '../authority/references.ts'
import { type KeyResidence, type KeyRow, residences } from '../authority/tables.ts'
import type { PkiContext } from '../context.ts'
import { makerOf } from '../context.ts'
import { type KeyKind, keyKind } from './keytype.ts'
import type { PreparedKey } from './newkeys.ts'

/** The source of a request's key. */
export type KeySource = 'internal' | 'exported' | 'existing' | 'kms'

export const keyFields = {
  key_type: text({ about: 'rsa, ec or ed25519; rsa when absent.' }),
  key_bits: integer({ about: 'Size of the modulus or the curve; 0 is the usual size of the type.' }),
  residence: text({
    about:
      'wrapped: a blob in the database that only the HSM can open; token: an object in the HSM; absent: the default of config/keys.',
  }),
  managed_key_name: text({ about: 'Name of the managed key; for type kms.' }),
  managed_key_id: text({ about: 'Id of the managed key; for type kms.' }),
}
const keyBody = Type.Object(keyFields)

type KeyBody = Static<typeof keyBody>

/** The key that a request names, or that was made for it. */
export type SourcedKey =
  | { readonly existing: KeyRow; readonly made: undefined }
  | { readonly existing: undefined; readonly made: PreparedKey }

/** @throws ApiError 400 */
export function readSource(source: string, sources: readonly KeySource[]): KeySource {
  const known = sources.find((one) => one === source)
  if (known !== undefined) return known
  if (!sources.includes('existing')) throw badRequest('Unknown type of key to generate')
  throw badRequest('the "exported" path parameter must be "internal", "existing", exported" or "kms"')
}

/** The key of a request: an existing one, or a new one that is not stored yet. @throws ApiError 400 */
export async function sourceKey(
  { context, mount, caller, warn }: Pick<Call<PkiContext>, 'context' | 'mount' | 'caller' | 'warn'>,
  authority: Authority,
  source: KeySource,
  body: Partial<KeyBody> & { readonly key_ref?: string | undefined; readonly key_name?: string | undefined },
): Promise<SourcedKey> {
  if ((source === 'existing' || source === 'kms') && (body.key_type || body.key_bits)) {
    throw badRequest(
      'invalid parameter for the kms/existing path parameter, key_type nor key_bits arguments can be set in this mode',
    )
  }
  refuseManaged(source, body)
  if (source === 'existing' && body.key_name) warn('key_name is for new keys, and was ignored')
  if (source !== 'existing' && body.key_ref) warn('key_ref is for keys of type existing, and was ignored')
  if (source === 'existing') return { existing: existingKey(authority, body.key_ref), made: undefined }
  const createdBy = makerOf(caller)
  if (source === 'kms') {
    return { existing: undefined, made: await context.newKeys.managed(mount, referenceOf(body), createdBy) }
  }
  const kind = validKind(body)
  const residence = residenceOf(body.residence || authority.settings.residence)
  const made =
    source === 'exported'
      ? await context.newKeys.exported(mount, kind, residence, createdBy)
      : await context.newKeys.generate(mount, kind, residence, createdBy)
  return { existing: undefined, made }
}

function validKind({ key_type: type, key_bits: bits }: Partial<KeyBody>): KeyKind {
  return keyKind(type || undefined, bits)
}

function existingKey(authority: Authority, reference = 'default'): KeyRow {
  if (reference === '') throw badRequest('missing argument key_ref for existing type')
  try {
    return keyOf(authority, reference)
  } catch (error) {
    throw badRequest(`failed to lookup public key from existing key: ${(error as Error).message}`)
  }
}

function refuseManaged(source: KeySource, { managed_key_name: name, managed_key_id: id }: Partial<KeyBody>): void {
  if (source !== 'kms' && (name || id)) {
    throw badRequest('managed_key_name and managed_key_id are for keys of type kms')
  }
}

function referenceOf({ managed_key_name: name, managed_key_id: id }: Partial<KeyBody>) {
  if (!name && !id) throw badRequest('missing argument managed_key_name or managed_key_id')
  if (name && id) throw badRequest('only one argument of managed_key_name or managed_key_id should be specified')
  return { name: name || undefined, id: id || undefined }
}

/** @throws ApiError 400 */
export function residenceOf(residence: string): KeyResidence {
  const known = residences.find((one) => one === residence)
  if (known !== undefined) return known
  throw badRequest('residence must be "wrapped" or "token"')
}
