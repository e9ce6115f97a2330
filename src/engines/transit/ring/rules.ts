import { badRequest } from '../../../errors.ts'
import { managedType } from './managedtype.ts'
import type { Attributes } from './ring.ts'

const shortestAutoRotateSeconds = 3600
/** The longest duration of the reference: 292 years. */
const longestAutoRotateSeconds = 9_223_372_036

export interface Configuration {
  readonly min_decryption_version?: number
  readonly min_encryption_version?: number
  readonly deletion_allowed?: boolean
  readonly exportable?: boolean
  readonly allow_plaintext_backup?: boolean
  readonly auto_rotate_period?: number
  readonly hmac_in_hsm_only?: boolean
}

/**
 * The changes requested by `keys/:name/config`, all or none. For exportable and allow_plaintext_backup only `true` has
 * an effect: material that could leave once may have left.
 * @throws ApiError 400 naming the rule
 */
export function configure(
  key: Attributes,
  wanted: Configuration,
): { changes: Partial<Attributes>; warnings: readonly string[] } {
  const warnings: string[] = []
  let decryption = wanted.min_decryption_version ?? key.minDecryptionVersion
  if (decryption < 0) throw badRequest('min decryption version cannot be negative')
  if (decryption === 0) {
    decryption = 1
    warnings.push('since Vault 0.3, transit key numbering starts at 1; forcing minimum to 1')
  }
  if (decryption > key.latestVersion) throw aboveLatest('decryption', decryption, key)
  const encryption = wanted.min_encryption_version ?? key.minEncryptionVersion
  if (encryption < 0) throw badRequest('min encryption version cannot be negative')
  if (encryption > key.latestVersion) throw aboveLatest('encryption', encryption, key)
  if (encryption > 0 && encryption < decryption) {
    throw badRequest(
      `cannot set min encryption/decryption values; min encryption version of ${encryption} must be greater than or equal to min decryption version of ${decryption}`,
    )
  }
  const autoRotateSeconds = wanted.auto_rotate_period ?? key.autoRotateSeconds
  checkAutoRotate(autoRotateSeconds)
  if (wanted.auto_rotate_period && key.imported && !key.allowRotation) {
    warnings.push('auto_rotate_period has no effect: the key was imported without allow_rotation')
  }
  const changes = changed(key, {
    minDecryptionVersion: decryption,
    minEncryptionVersion: encryption,
    deletionAllowed: wanted.deletion_allowed ?? key.deletionAllowed,
    exportable: key.exportable || wanted.exportable === true,
    allowPlaintextBackup: key.allowPlaintextBackup || wanted.allow_plaintext_backup === true,
    autoRotateSeconds,
    hmacInHsmOnly: (wanted.hmac_in_hsm_only ?? key.hmacInHsmOnly) || null,
  })
  if (Object.keys(changes).length > 0) {
    if (key.minAvailableVersion > encryption) {
      throw badRequest('min encryption version should not be less than min available version')
    }
    if (key.minAvailableVersion > decryption) {
      throw badRequest('min decryption version should not be less then min available version')
    }
  }
  return { changes, warnings }
}

/** @throws ApiError 400 unless 0, or at least an hour and at most 292 years */
export function checkAutoRotate(seconds: number): void {
  if (seconds !== 0 && seconds < shortestAutoRotateSeconds) {
    throw badRequest('auto rotate period must be 0 to disable or at least an hour')
  }
  if (seconds > longestAutoRotateSeconds) throw badRequest('auto rotate period must be at most 292 years')
}

/** @throws ApiError 400 for a soft-deleted key */
export function refuseSoftDeleted(key: Pick<Attributes, 'softDeleted'>): void {
  if (key.softDeleted) throw badRequest('refusing to use soft-deleted key')
}

/**
 * The changes of a rotation to the row. @throws ApiError 400 for a soft-deleted key, and for an imported key that
 * forbids rotation
 */
export function rotated(name: string, key: Attributes): Partial<Attributes> {
  refuseSoftDeleted(key)
  if (key.imported && !key.allowRotation) {
    throw badRequest(`imported key ${name} does not allow rotation within Vault`)
  }
  return { latestVersion: key.latestVersion + 1, imported: false }
}

/**
 * The time of the next automatic rotation, in milliseconds since the epoch; null is never. Rotating a managed key takes
 * a caller who names the next one.
 * @param latestAt when the latest version was made
 */
export function rotationDue(
  key: Pick<Attributes, 'type' | 'autoRotateSeconds' | 'imported' | 'allowRotation' | 'softDeleted'>,
  latestAt: number,
): number | null {
  const { type, autoRotateSeconds, imported, allowRotation, softDeleted } = key
  if (autoRotateSeconds === 0 || softDeleted || (imported && !allowRotation) || type === managedType) return null
  return latestAt + autoRotateSeconds * 1000
}

/**
 * The changes of a trim to the row: versions below `version` are removed for ever.
 * @throws ApiError 400 unless both minimum versions are at or above it
 */
export function trimmed(key: Attributes, version: number): Partial<Attributes> {
  const { minAvailableVersion, minEncryptionVersion, minDecryptionVersion } = key
  const refuse = (why: string) => badRequest(`minimum available version ${why}`)
  // Also refuses negative numbers, since the current one is never negative.
  if (version < minAvailableVersion) throw refuse('cannot be decremented')
  if (minEncryptionVersion === 0) throw refuse('cannot be set when minimum encryption version is not set')
  if (minDecryptionVersion === 0) throw refuse('cannot be set when minimum decryption version is not set')
  // The reference's spelling, which clients may match.
  if (version > minEncryptionVersion) throw refuse('cannot be greater than minmum encryption version')
  if (version > minDecryptionVersion) throw refuse('cannot be greater than minimum decryption version')
  if (version === 0) throw refuse('should be positive')
  return { minAvailableVersion: version }
}

const aboveLatest = (which: string, version: number, key: Attributes) =>
  badRequest(`cannot set min ${which} version of ${version}, latest key version is ${key.latestVersion}`)

function changed(key: Attributes, wanted: Partial<Attributes>): Partial<Attributes> {
  const current: Partial<Record<string, unknown>> = { ...key }
  return Object.fromEntries(Object.entries(wanted).filter(([name, value]) => current[name] !== value))
}
