import { nextTurn } from '../../../after.ts'
import { Arithmetic } from '../../../crypto/arithmetic.ts'
import { decodeBase64 } from '../../../crypto/base64.ts'
import { writePem } from '../../../crypto/pem.ts'
import { badRequest } from '../../../errors.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import type { KeyBytes } from '../../../keys/transfer/keyimport.ts'
import { ecKey, ed25519Key, rsaKey } from '../../../keys/transfer/numbers.ts'
import type { Kdf } from '../../../keys/use/derivation.ts'
import { type CopiedVersion, type Copy, checkCount, invalid, unreadable, wipeVersions } from './copy.ts'

/**
 * Backups of Vault and OpenBao: the JSON of their Go structs. Big numbers of keys are JSON integers, periods are
 * nanoseconds, `archived_keys` holds every version from min_available_version on, and `policy.keys` those in use.
 */

/**
 * A string, or an integer that may exceed 2^53. The end of a string is optional, so that the match never backtracks.
 */
const stringOrLong = /"[^"\\]*(?:\\.[^"\\]*)*"?|\d{16,}/g

/**
 * Parses JSON with long integers as `{digits}`, since JavaScript would round them. (A reviver could see them too, but
 * takes seconds for a text of many members.)
 * @throws Error for invalid JSON
 */
export const parseWithDigits = (text: string): unknown =>
  JSON.parse(text.replace(stringOrLong, (found) => (found.startsWith('"') ? found : `{"digits":"${found}"}`)))

/** The digits of a number in such JSON, at most 5000; undefined for a negative number or another value. */
function digitsOf(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? String(value) : undefined
  if (typeof value !== 'object' || value === null || !('digits' in value)) return undefined
  const { digits } = value
  return typeof digits === 'string' && /^\d{1,5000}$/.test(digits) ? digits : undefined
}
const isNumber = (value: unknown): value is unknown => digitsOf(value) !== undefined

/** A big number of a key, big-endian; the caller wipes it. The text it was read from stays in V8's heap. */
function numberOf(value: unknown): Buffer | undefined {
  const digits = digitsOf(value)
  if (digits === undefined) return undefined
  using arithmetic = new Arithmetic()
  return Buffer.from(arithmetic.decimal(digits))
}

/** An untrusted JSON object. */
class Fields {
  readonly #members: Readonly<Record<string, unknown>>

  /** @throws ApiError 400 unless it is an object */
  constructor(value: unknown) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw unreadable()
    this.#members = value as Record<string, unknown>
  }

  /** Go omits empty members or writes null. */
  #get<T>(name: string, fits: (value: unknown) => value is T, empty: T): T {
    const value = Object.hasOwn(this.#members, name) ? this.#members[name] : undefined
    if (value === undefined || value === null) return empty
    if (!fits(value)) throw unreadable(new Error(`${name} has another type`))
    return value
  }

  text = (name: string): string => this.#get(name, (value) => typeof value === 'string', '')
  flag = (name: string): boolean => this.#get(name, (value) => typeof value === 'boolean', false)
  integer = (name: string): number => this.#get(name, (value): value is number => Number.isSafeInteger(value), 0)
  list = (name: string): readonly unknown[] => this.#get(name, (value) => Array.isArray(value), [])
  fields = (name: string): Fields =>
    new Fields(this.#get(name, (value): value is object => typeof value === 'object', {}))
  has = (name: string): boolean => Object.hasOwn(this.#members, name) && this.#members[name] !== null
  bytes = (name: string): Buffer => decodeBase64(this.text(name), () => 'the backup contains invalid base64')
  /** undefined when absent. */
  digits = (name: string): string | undefined => digitsOf(this.#get<unknown>(name, isNumber, undefined))
  number = (name: string): Buffer | undefined => numberOf(this.#get<unknown>(name, isNumber, undefined))
}

const types: Readonly<Record<number, string>> = {
  0: 'aes256-gcm96',
  1: 'ecdsa-p256',
  2: 'ed25519',
  3: 'rsa-2048',
  4: 'rsa-4096',
  5: 'chacha20-poly1305',
  6: 'ecdsa-p384',
  7: 'ecdsa-p521',
  8: 'aes128-gcm96',
  9: 'rsa-3072',
}

/**
 * Vault and OpenBao disagree about the type numbers from 10 on. HMAC keys alone have a size, and managed keys alone
 * have no bytes.
 */
function typeOf(number: number, policy: Fields, latest: Fields): string {
  const known = types[number]
  if (known !== undefined) return known
  if (number === 10 || number === 11) {
    if (latest.text('managed_key_id') !== '' || (number === 10 && latest.text('key') === '')) {
      throw badRequest(
        'the backup contains a managed key, which stays in its HSM: configure that key here and refer to it',
      )
    }
    if (policy.integer('key_size') > 0) return 'hmac'
    throw badRequest('keys of type xchacha20-poly1305 cannot be restored')
  }
  throw badRequest(`the backup has an unknown key type: number ${number}`)
}

/** @param parsed the result of parseWithDigits @throws ApiError 400 */
export async function readVaultBlob(parsed: object): Promise<Copy> {
  const whole = new Fields(parsed)
  if (!whole.has('policy')) throw unreadable()
  const policy = whole.fields('policy')
  const [latestVersion, minAvailableVersion] = [
    policy.integer('latest_version'),
    policy.integer('min_available_version'),
  ]
  const current = policy.fields('keys')
  const archived = whole.fields('archived_keys').list('keys')
  if (latestVersion < 1 || minAvailableVersion < 0) throw unreadable()
  const lowest = Math.max(1, minAvailableVersion)
  checkCount(latestVersion - lowest + 1)
  // If the archive began elsewhere, each version would get the key of another.
  if (archived.length > latestVersion - minAvailableVersion + 1) throw invalid('the archive has more versions')
  const entryOf = (version: number): Fields => {
    if (current.has(String(version))) return current.fields(String(version))
    const entry = archived[version - minAvailableVersion]
    if (entry === undefined || entry === null) throw badRequest(`the backup lacks version ${version}`)
    return new Fields(entry)
  }
  const type = typeOf(policy.integer('type'), policy, entryOf(latestVersion))
  const [derived, convergent] = [policy.flag('derived'), policy.flag('convergent_encryption')]
  const versions: CopiedVersion[] = []
  const convergence = convergent ? policy.integer('convergent_version') : undefined
  try {
    for (let version = lowest; version <= latestVersion; version++) {
      await nextTurn()
      versions.push(versionOf(type, version, entryOf(version), convergence))
    }
  } catch (error) {
    wipeVersions(versions)
    throw error
  }
  const kdf: Kdf = policy.integer('kdf') === 1 ? 'hkdf_sha256' : 'hmac-sha256-counter'
  const key = {
    name: policy.text('name'),
    type,
    derived,
    convergent,
    convergentVersion: convergent ? policy.integer('convergent_version') || 1 : 0,
    kdf: derived ? kdf : '',
    exportable: policy.flag('exportable'),
    allowPlaintextBackup: policy.flag('allow_plaintext_backup'),
    keySize: type === 'hmac' ? policy.integer('key_size') : 0,
    autoRotateSeconds: Number(BigInt(policy.digits('auto_rotate_period') ?? 0) / 1_000_000_000n),
    minDecryptionVersion: Math.max(1, policy.integer('min_decryption_version')),
    minEncryptionVersion: policy.integer('min_encryption_version'),
    minAvailableVersion,
    latestVersion,
    deletionAllowed: policy.flag('deletion_allowed'),
    imported: policy.flag('Imported'),
    allowRotation: policy.flag('AllowImportedKeyRotation'),
    softDeleted: policy.flag('soft_deleted'),
    hmacInHsmOnly: null,
    createdAt: versions[0]?.createdAt ?? 0,
  }
  return { key, versions }
}

/** @param convergence the policy's, which each version may override; 0 dates from before convergence had versions */
function versionOf(type: string, version: number, entry: Fields, convergence: number | undefined): CopiedVersion {
  const key = keyOf(type, entry)
  let hmac: Buffer | undefined
  try {
    // Of a type hmac it is the key itself once more.
    hmac = algorithmOf(type).mac ? undefined : entry.bytes('hmac_key')
    return {
      version,
      createdAt: entry.has('time') ? timeOf(entry.text('time')) : entry.integer('creation_time') * 1000,
      convergentVersion: convergence === undefined ? 0 : entry.integer('convergent_version') || convergence || 1,
      certificateChain: chainOf(entry),
      key,
      hmac: hmac?.length ? hmac : undefined,
    }
  } catch (error) {
    key.bytes.fill(0)
    hmac?.fill(0)
    throw error
  }
}

function timeOf(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw unreadable()
  // Go's zero time is in the year 1.
  return Math.max(0, time)
}

/** DER certificates, leaf first, each in base64. */
function chainOf(entry: Fields): string | null {
  const chain = entry.list('certificate_chain')
  if (chain.length === 0) return null
  const pem = chain.map((der) => {
    if (typeof der !== 'string') throw unreadable()
    return writePem('CERTIFICATE', decodeBase64(der))
  })
  return pem.join('\n')
}

function keyOf(type: string, entry: Fields): KeyBytes {
  const algorithm = algorithmOf(type)
  switch (algorithm.kind) {
    case 'aead':
      return { kind: 'secret', bytes: entry.bytes('key') }
    case 'hmac':
      return { kind: 'secret', bytes: entry.has('key') ? entry.bytes('key') : entry.bytes('hmac_key') }
    case 'ed25519':
      return ed25519Key(algorithm, { pair: entry.bytes('key'), publicKey: entry.text('public_key') })
    case 'ec':
      return ecKey(algorithm, { x: entry.number('ec_x'), y: entry.number('ec_y'), d: entry.number('ec_d') })
    case 'rsa': {
      const [key, publicKey] = [entry.fields('rsa_key'), entry.fields('rsa_public_key')]
      const half = entry.has('rsa_key') ? key : publicKey
      // What may be refused is read before the secret numbers, which rsaKey wipes.
      const [n, e, listed] = [half.number('N'), half.number('E'), key.list('Primes')]
      return rsaKey(algorithm, { n, e, d: key.number('D'), primes: listed.map(numberOf) })
    }
  }
}
