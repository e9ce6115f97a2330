import { badRequest } from '../../../errors.ts'
import type { Attributes, Ring, Version } from './ring.ts'

/** The lowest usable version: those below it are trimmed or archived. */
const floor = (key: Attributes): number => Math.max(1, key.minAvailableVersion, key.minDecryptionVersion)

/** @throws ApiError 400 `no such key version` */
export function versionOf(ring: Ring, version: number): Version {
  const found = version < floor(ring.key) ? undefined : ring.versions.get(version)
  if (found === undefined) throw badRequest('no such key version')
  return found
}

type Purpose = 'encryption' | 'signing'

/** @throws ApiError 400 when the version is above the latest or below min_encryption_version; 0 means the latest */
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

/** The version that encrypts or signs: 0 means the latest. @throws ApiError 400, as checkVersionToMake */
export function versionToMake(ring: Ring, requested: number, purpose: Purpose): Version {
  checkVersionToMake(ring.key, requested, purpose)
  return versionOf(ring, requested === 0 ? ring.key.latestVersion : requested)
}

/**
 * The version that a certificate is for: any that is kept, since a certificate may be used longer than the version
 * signs. 0 means the latest.
 * @param failed the beginning of the refusal
 * @throws ApiError 400 `no such key version`
 */
export function versionToCertify({ key, versions }: Ring, requested: number, failed: string): Version {
  const version = requested === 0 ? key.latestVersion : requested
  const found = version < key.minAvailableVersion ? undefined : versions.get(version)
  if (found === undefined) throw badRequest(`${failed}: no such key version`)
  return found
}

/** The version whose secret makes an HMAC: 0 means the latest. @throws ApiError 400 */
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
 * A version above the latest of a cached ring: another worker may just have used it, before the rotation was
 * acknowledged. The operation is repeated with a ring read from the database.
 */
export class VersionAhead extends Error {}

/**
 * The version that decrypts or verifies its own earlier output.
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
 * The versions requested by an export.
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
