import { badRequest } from '../../../errors.ts'
import { type Algorithm, algorithms } from '../../../keys/algorithms.ts'
import type { KeyBytes } from '../../../keys/transfer/keyimport.ts'
import type { Kdf } from '../../../keys/use/derivation.ts'
import { checkAutoRotate } from '../ring/rules.ts'
import type { KeyRow } from '../ring/tables.ts'

/** A key as a backup holds it, whoever wrote it: what its row says, and what each version is made of. */
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
  /** undefined: a key of type hmac, or one so old that it had none. */
  readonly hmac: Buffer | undefined
}

const keyName = /^\w(?:[\w.-]*\w)?$/
/** Each is brought into the token by itself, while the caller waits. */
const mostVersions = 5000
/** Ciphertexts name versions in ten digits, and this one may rotate. */
const highestVersion = 999_999_999
/** Milliseconds: the end of the last year of four digits. */
const latestTime = Date.UTC(10_000, 0) - 1
const kdfs: readonly string[] = ['hkdf_sha256', 'hmac-sha256-counter'] satisfies Kdf[]
const longestChain = 1 << 20

/** The one text for bytes that are no whole backup, whatever is wrong with them. */
export const unreadable = (cause?: unknown): Error =>
  badRequest('the backup cannot be read: it is damaged, or none of Strongroom, Vault or OpenBao', { cause })

/** @throws ApiError 400 */
export function checkName(name: string): void {
  if (name.includes('/')) throw badRequest('key names cannot be paths')
  if (!keyName.test(name)) throw badRequest('the name of the key is none that a key can have')
}

/**
 * What every ring obeys; what its keys are is checked where they are brought into the token.
 * @returns the algorithm
 * @throws ApiError 400 naming what no key can be
 */
export function checkCopy({ key, versions }: Copy): Algorithm {
  const algorithm = algorithms.get(key.type)
  if (algorithm === undefined) throw badRequest(`keys of type ${key.type} cannot be restored`)
  if (key.derived && !algorithm.abilities.derive) throw impossible(`${key.type} keys are not derived from`)
  if (key.convergent && !(key.derived && algorithm.kind === 'aead')) throw impossible('convergent without derivation')
  if (key.derived ? !kdfs.includes(key.kdf) : key.kdf !== '') throw impossible('derivation and KDF disagree')
  const convergence = key.convergent ? inside(key.convergentVersion, -1, 3) : key.convergentVersion === 0
  if (!convergence) throw impossible(`convergent version ${key.convergentVersion}`)
  if (!inside(key.createdAt, 0, latestTime)) throw impossible('its time')
  if (algorithm.kind === 'hmac' ? !inside(key.keySize, 16, 512) : key.keySize !== 0) throw impossible('key_size')
  checkAutoRotate(key.autoRotateSeconds)
  checkVersions(key)
  checkCount(versions.length)
  const lowest = Math.max(1, key.minAvailableVersion)
  const numbers = versions.map(({ version }) => version)
  const complete = numbers.every((number, index) => number === lowest + index) && numbers.at(-1) === key.latestVersion
  if (!complete) throw impossible(`versions ${lowest} to ${key.latestVersion} must be there`)
  for (const { version, createdAt, convergentVersion, certificateChain } of versions) {
    if (!inside(createdAt, 0, latestTime)) throw impossible(`the time of version ${version}`)
    if ((certificateChain?.length ?? 0) > longestChain) throw impossible(`the certificate chain of version ${version}`)
    if (key.convergent ? !inside(convergentVersion, 1, 3) : convergentVersion !== 0) {
      throw impossible(`convergent version ${convergentVersion} of version ${version}`)
    }
  }
  return algorithm
}

/** @throws ApiError 400 naming the limit; to be asked before much work is done for them */
export function checkCount(versions: number): void {
  if (versions > mostVersions) throw impossible(`more than ${mostVersions} versions`)
}

/** A backup that can be read, of what no key is. */
export const impossible = (why: string): Error => badRequest(`the backup is of no key that can be: ${why}`)

function checkVersions(key: CopiedKey): void {
  const { latestVersion, minAvailableVersion, minDecryptionVersion, minEncryptionVersion } = key
  if (!inside(latestVersion, 1, highestVersion)) throw impossible('latest_version')
  if (!inside(minDecryptionVersion, 1, latestVersion)) throw impossible('min_decryption_version')
  const encryption = minEncryptionVersion === 0 || inside(minEncryptionVersion, minDecryptionVersion, latestVersion)
  if (!encryption) throw impossible('min_encryption_version')
  if (!inside(minAvailableVersion, 0, minDecryptionVersion)) throw impossible('min_available_version')
}

const inside = (number: number, low: number, high: number): boolean =>
  Number.isSafeInteger(number) && number >= low && number <= high

/** Fills every key of a copy with zeros. */
export function wipeCopy({ versions }: Copy): void {
  for (const { key, hmac } of versions) {
    key.bytes.fill(0)
    hmac?.fill(0)
  }
}
