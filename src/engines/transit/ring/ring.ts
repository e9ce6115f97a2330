import { badRequest } from '../../../errors.ts'
import { managedType } from './managedtype.ts'

/** What a transit key is besides its material: the columns of its sealed row that rules look at. */
export interface Attributes {
  readonly type: string
  readonly exportable: boolean
  readonly allowPlaintextBackup: boolean
  readonly deletionAllowed: boolean
  readonly autoRotateSeconds: number
  readonly latestVersion: number
  readonly minDecryptionVersion: number
  readonly minEncryptionVersion: number
  readonly minAvailableVersion: number
  readonly imported: boolean
  readonly allowRotation: boolean
  readonly softDeleted: boolean
}

/** Where the parts of one version lie: ids of rows that keys/ owns. */
export interface Version {
  readonly version: number
  readonly material: string
  readonly hmacMaterial: string | null
  /** What a derived key's keys are made from; null for the rest. */
  readonly prkMaterial: string | null
  /** 0 to 3: how its encryption is convergent (keys/derived.ts). */
  readonly convergentVersion: number
  /** Uuid of the managed key whose material this is; null for keys of ours. */
  readonly managedKey: string | null
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** PEM, leaf first. */
  readonly certificateChain: string | null
}

/** All live versions of a key; `versions` holds every number from the floor to the latest. */
export interface Ring<Row extends Attributes = Attributes> {
  readonly key: Row
  readonly versions: ReadonlyMap<number, Version>
  /** True of one that was just read: no rotation that anybody can have seen the work of is missing in it. */
  readonly current?: true
}

const shortestAutoRotateSeconds = 3600
/** What the reference's durations hold: 292 years. */
const longestAutoRotateSeconds = 9_223_372_036

/** The lowest version that anything may still be done with; trimmed ones are gone, archived ones refused. */
const floor = (key: Attributes): number => Math.max(1, key.minAvailableVersion, key.minDecryptionVersion)

/** @throws ApiError 400 `no such key version` */
export function versionOf(ring: Ring, version: number): Version {
  const found = version < floor(ring.key) ? undefined : ring.versions.get(version)
  if (found === undefined) throw badRequest('no such key version')
  return found
}

type Purpose = 'encryption' | 'signing'

/** @throws ApiError 400 when the version is above the latest or below min_encryption_version; 0 asks for the latest */
export function checkVersionToMake(
  { latestVersion, minEncryptionVersion }: Pick<Attributes, 'latestVersion' | 'minEncryptionVersion'>,
  requested: number,
  purpose: Purpose,
): void {
  const refuse = (why: string) => badRequest(`requested version for ${purpose} is ${why}`)
  if (requested < 0) throw refuse('negative')
  if (requested > latestVersion) throw refuse('higher than the latest key version')
  if (requested !== 0 && requested < minEncryptionVersion) {
    throw refuse('less than the minimum encryption key version')
  }
}

/** The version that encrypts or signs: 0 asks for the latest. @throws ApiError 400, as checkVersionToMake */
export function versionToMake(ring: Ring, requested: number, purpose: Purpose): Version {
  checkVersionToMake(ring.key, requested, purpose)
  return versionOf(ring, requested === 0 ? ring.key.latestVersion : requested)
}

/** The version whose secret makes an HMAC: 0 asks for the latest. @throws ApiError 400 */
export function versionToMac(ring: Ring, requested: number): Version {
  const { latestVersion, minEncryptionVersion } = ring.key
  if (requested < 0) throw badRequest('key version does not exist (cannot be negative)')
  if (requested > latestVersion) {
    throw badRequest(`key version does not exist; latest key version is ${latestVersion}`)
  }
  if (requested !== 0 && requested !== latestVersion && requested < minEncryptionVersion) {
    throw badRequest('cannot generate HMAC: version is too old (disallowed by policy)')
  }
  return versionOf(ring, requested === 0 ? latestVersion : requested)
}

const tooOld = {
  ciphertext: 'ciphertext or signature version is disallowed by policy (too old)',
  signature: 'ciphertext or signature version is disallowed by policy (too old)',
  HMAC: 'cannot verify HMAC: version is too old (disallowed by policy)',
}

/**
 * A version above the latest of a cached ring: another worker may have made something with it just now, though the rotation
 * is not acknowledged yet. To be looked at again with a ring that is current.
 */
export class VersionAhead extends Error {}

/**
 * The version that decrypts or verifies what it once made.
 * @throws ApiError 400 below the floor or above the latest
 * @throws VersionAhead above the latest of a ring that is not current
 */
export function versionToUse(ring: Ring, version: number, what: 'ciphertext' | 'signature' | 'HMAC'): Version {
  if (version > ring.key.latestVersion) {
    const text = `invalid ${what}: version is too new`
    throw ring.current ? badRequest(text) : new VersionAhead(text)
  }
  if (version < ring.key.minDecryptionVersion) throw badRequest(tooOld[what])
  return versionOf(ring, version)
}

/**
 * The versions that an export asks for.
 * @param wanted `latest`, N or vN; absent is every version from min_decryption_version on
 * @throws ApiError 400 for a version that does not exist or may not be used
 */
export function versionsToExport<Row extends Attributes>(
  { key, versions }: Ring<Row>,
  wanted: string | undefined,
): readonly Version[] {
  const all = [...versions.values()]
  if (!wanted) return all.filter(({ version }) => version >= key.minDecryptionVersion)
  const digits = wanted.replace(/^v/, '')
  if (wanted !== 'latest' && !/^\d{1,10}$/.test(digits)) throw badRequest('invalid key version')
  const number = wanted === 'latest' ? key.latestVersion : Number(digits)
  if (number < key.minDecryptionVersion) throw badRequest('version for export is below minimum decryption version')
  const found = versions.get(number)
  if (found === undefined) throw badRequest('version does not exist or cannot be found')
  return [found]
}

export interface Configuration {
  readonly min_decryption_version?: number
  readonly min_encryption_version?: number
  readonly deletion_allowed?: boolean
  readonly exportable?: boolean
  readonly allow_plaintext_backup?: boolean
  readonly auto_rotate_period?: number
}

/**
 * The changes that `keys/:name/config` asks for, all or none. Only `true` counts for exportable and
 * allow_plaintext_backup: what once could leave cannot be said never to have left.
 * @throws ApiError 400 that names the rule
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
  const changes = changed(key, {
    minDecryptionVersion: decryption,
    minEncryptionVersion: encryption,
    deletionAllowed: wanted.deletion_allowed ?? key.deletionAllowed,
    exportable: key.exportable || wanted.exportable === true,
    allowPlaintextBackup: key.allowPlaintextBackup || wanted.allow_plaintext_backup === true,
    autoRotateSeconds,
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

/** @throws ApiError 400 unless 0, or at least an hour and a time that can come */
export function checkAutoRotate(seconds: number): void {
  if (seconds !== 0 && seconds < shortestAutoRotateSeconds) {
    throw badRequest('auto rotate period must be 0 to disable or at least an hour')
  }
  if (seconds > longestAutoRotateSeconds) throw badRequest('auto rotate period must be at most 292 years')
}

/** @throws ApiError 400 for a key that is put away until somebody restores it */
export function refuseSoftDeleted(key: Pick<Attributes, 'softDeleted'>): void {
  if (key.softDeleted) throw badRequest('refusing to use soft-deleted key')
}

/** What rotation does to the row. @throws ApiError 400 for a soft-deleted key, and an imported one that forbids it */
export function rotated(name: string, key: Attributes): Partial<Attributes> {
  refuseSoftDeleted(key)
  if (key.imported && !key.allowRotation) {
    throw badRequest(`imported key ${name} does not allow rotation within Vault`)
  }
  return { latestVersion: key.latestVersion + 1, imported: false }
}

/**
 * When the key is to rotate by itself, in milliseconds since the epoch; null is never. A managed key has nothing to rotate to
 * until somebody names it.
 * @param latestAt when the latest version was made
 */
export function rotationDue(key: Attributes, latestAt: number): number | null {
  const { type, autoRotateSeconds, imported, allowRotation, softDeleted } = key
  if (autoRotateSeconds === 0 || softDeleted || (imported && !allowRotation) || type === managedType) return null
  return latestAt + autoRotateSeconds * 1000
}

/**
 * What trimming does to the row: versions below `version` go for ever.
 * @throws ApiError 400 unless both minimum versions are at or above it
 */
export function trimmed(key: Attributes, version: number): Partial<Attributes> {
  const { minAvailableVersion, minEncryptionVersion, minDecryptionVersion } = key
  const refuse = (why: string) => badRequest(`minimum available version ${why}`)
  // A negative one is a step back too, since none of them ever is.
  if (version < minAvailableVersion) throw refuse('cannot be decremented')
  if (minEncryptionVersion === 0) throw refuse('cannot be set when minimum encryption version is not set')
  if (minDecryptionVersion === 0) throw refuse('cannot be set when minimum decryption version is not set')
  // The reference's spelling, which clients may match on.
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
