import { badRequest } from '../../../errors.ts'
import type { Algorithm } from '../../../keys/algorithms/algorithm.ts'
import { algorithms } from '../../../keys/algorithms.ts'
import type { KeyBytes } from '../../../keys/transfer/keyimport.ts'
import type { Kdf } from '../../../keys/use/derivation.ts'
import { checkAutoRotate } from '../ring/rules.ts'
import type { KeyRow } from '../ring/tables.ts'

/** A key as a backup of any server contains it: its attributes, and the bytes of each version. */
export interface Copy {
  readonly key: CopiedKey
  readonly versions: readonly CopiedVersion[]
}

export type CopiedKey = Omit<
  KeyRow,
  'id' | 'namespace' | 'mount' | 'rev' | 'epoch' | 'backupInfo' | 'restoreInfo' | 'rotateAt'
>

export interface CopiedVersion {
  readonly version: number
  readonly createdAt: number
  readonly convergentVersion: number
  readonly certificateChain: string | null
  readonly key: KeyBytes
  /** Absent for type hmac, and for keys from before versions had an HMAC secret. */
  readonly hmac: Buffer | undefined
}

const keyName = /^\w(?:[\w.-]*\w)?$/
/** Each version is imported into the token while the caller waits. */
const mostVersions = 5000
/** Ciphertexts give the version in at most ten digits, and the key must still be able to rotate. */
const highestVersion = 999_999_999
/** The end of the year 9999, in milliseconds. */
const latestTime = Date.UTC(10_000, 0) - 1
const kdfs: readonly string[] = ['hkdf_sha256', 'hmac-sha256-counter'] satisfies Kdf[]
const longestChain = 1 << 20

/** The only refusal of bytes that are not a whole backup. */
export const unreadable = (cause?: unknown): Error =>
  badRequest('the backup cannot be read: it is damaged, or not from Strongroom, Vault or OpenBao', { cause })

/** @throws ApiError 400 */
export function checkName(name: string): void {
  if (name.includes('/')) throw badRequest('key names cannot be paths')
  if (!keyName.test(name)) throw badRequest('invalid key name')
}

/** Only HMAC keys have a variable size. */
const sizeFits = ({ mac }: Algorithm, size: number): boolean =>
  mac ? inside(size, mac.minimumBytes, mac.maximumBytes) : size === 0

/**
 * Checks the rules that every ring obeys. The key bytes are checked when they are imported.
 * @returns the algorithm
 * @throws ApiError 400 naming the broken rule
 */
export function checkCopy({ key, versions }: Copy): Algorithm {
  const algorithm = algorithms.get(key.type)
  if (algorithm === undefined) throw badRequest(`keys of type ${key.type} cannot be restored`)
  if (key.derived && !algorithm.abilities.derive) throw invalid(`keys of type ${key.type} are never derived`)
  if (key.convergent && !(key.derived && algorithm.aead))
    throw invalid('a convergent key must be derived and of an AEAD type')
  if (key.derived ? !kdfs.includes(key.kdf) : key.kdf !== '') throw invalid('the KDF does not fit the derivation')
  const convergence = key.convergent ? inside(key.convergentVersion, -1, 3) : key.convergentVersion === 0
  if (!convergence) throw invalid(`convergent version ${key.convergentVersion}`)
  if (!inside(key.createdAt, 0, latestTime)) throw invalid('the creation time')
  if (!sizeFits(algorithm, key.keySize)) throw invalid('key_size')
  checkAutoRotate(key.autoRotateSeconds)
  checkVersions(key)
  checkCount(versions.length)
  const lowest = Math.max(1, key.minAvailableVersion)
  const numbers = versions.map(({ version }) => version)
  const complete = numbers.every((number, index) => number === lowest + index) && numbers.at(-1) === key.latestVersion
  if (!complete) throw invalid(`versions ${lowest} to ${key.latestVersion} must be present`)
  for (const { version, createdAt, convergentVersion, certificateChain } of versions) {
    if (!inside(createdAt, 0, latestTime)) throw invalid(`the creation time of version ${version}`)
    if ((certificateChain?.length ?? 0) > longestChain) throw invalid(`the certificate chain of version ${version}`)
    if (key.convergent ? !inside(convergentVersion, 1, 3) : convergentVersion !== 0) {
      throw invalid(`convergent version ${convergentVersion} of version ${version}`)
    }
  }
  return algorithm
}

/** Checked before the versions cost any work. @throws ApiError 400 naming the limit */
export function checkCount(versions: number): void {
  if (versions > mostVersions) throw invalid(`more than ${mostVersions} versions`)
}

/** The refusal of a readable backup that does not describe a valid key. */
export const invalid = (why: string): Error => badRequest(`invalid backup: ${why}`)

function checkVersions(key: CopiedKey): void {
  const { latestVersion, minAvailableVersion, minDecryptionVersion, minEncryptionVersion } = key
  if (!inside(latestVersion, 1, highestVersion)) throw invalid('latest_version')
  if (!inside(minDecryptionVersion, 1, latestVersion)) throw invalid('min_decryption_version')
  const encryption = minEncryptionVersion === 0 || inside(minEncryptionVersion, minDecryptionVersion, latestVersion)
  if (!encryption) throw invalid('min_encryption_version')
  if (!inside(minAvailableVersion, 0, minDecryptionVersion)) throw invalid('min_available_version')
}

const inside = (number: number, low: number, high: number): boolean =>
  Number.isSafeInteger(number) && number >= low && number <= high

/** Wipes every key of a copy. */
export const wipeCopy = ({ versions }: Copy): void => wipeVersions(versions)

/** Wipes the keys and the HMAC secrets of versions. */
export function wipeVersions(versions: readonly CopiedVersion[]): void {
  for (const { key, hmac } of versions) {
    key.bytes.fill(0)
    hmac?.fill(0)
  }
}
