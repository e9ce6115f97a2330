import { badRequest } from '../../../errors.ts'
import type { Reference } from '../../../keys/managed/managedkeys.ts'

/** The fields that name a managed key. */
interface ReferenceFields {
  readonly managed_key_name?: string | undefined
  readonly managed_key_id?: string | undefined
}

/**
 * The managed key named by a request.
 * @param managed whether the key is of type managed_key
 * @throws ApiError 400 when it is missing, or given for a key of another type
 */
export function readReference(input: ReferenceFields, managed: boolean): Reference | undefined {
  const { managed_key_name: name, managed_key_id: id } = input
  if (managed) {
    if (!name && !id) {
      throw badRequest('one of managed_key_name and managed_key_id is required for keys of type managed_key')
    }
    return { name: name || undefined, id: id || undefined }
  }
  if (name || id) throw badRequest('managed_key_name and managed_key_id are for keys of type managed_key')
  return undefined
}

/** Refuses attributes that a key of type managed_key cannot have. @throws ApiError 400 */
export function checkManaged(wanted: {
  readonly derived?: boolean | undefined
  readonly convergent_encryption?: boolean | undefined
  readonly exportable?: boolean | undefined
  readonly allow_plaintext_backup?: boolean | undefined
  readonly auto_rotate_period?: number | undefined
  readonly key_size?: number | undefined
}): void {
  if (wanted.derived || wanted.convergent_encryption) {
    throw badRequest('key derivation and convergent encryption not supported for keys of type managed_key')
  }
  if (wanted.exportable || wanted.allow_plaintext_backup) {
    throw badRequest('keys of type managed_key stay in their token: they cannot be exported or backed up')
  }
  if (wanted.auto_rotate_period) {
    throw badRequest('keys of type managed_key do not rotate automatically: each rotation must name a managed key')
  }
  if (wanted.key_size) throw badRequest('key_size is not valid for algorithm managed_key')
}
