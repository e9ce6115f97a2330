import { badRequest } from '../../errors.ts'
import { CKK, CKM } from '../../hsm/constants.ts'

/** A usage that a managed key may be allowed. */
export type ManagedUsage = (typeof managedUsages)[number]
export const managedUsages = ['encrypt', 'decrypt', 'sign', 'verify', 'wrap', 'unwrap', 'mac', 'random'] as const

/** One PKCS#11 mechanism that managed keys can have, and its consequences. */
export interface ManagedMechanism {
  readonly number: number
  readonly name: string
  /** CKA_CLASS and CKA_KEY_TYPE of the key that it needs. */
  readonly class: 'private' | 'secret'
  readonly keyType: number
  /** It signs, or it encrypts; never both. */
  readonly usages: readonly ['sign', 'verify'] | readonly ['encrypt', 'decrypt']
  /** RSA signatures: the only padding it makes. */
  readonly padding?: 'pss' | 'pkcs1v15'
  /** Ciphers: the length of its IV. */
  readonly ivBytes?: number
  /** Whether random IVs bound how often a key may encrypt (SP 800-38D section 8.3). */
  readonly counted?: true
  /** Ciphers: whether the refusal of a changed ciphertext tells about its plaintext (Vaudenay 2002). */
  readonly oracle?: true
  /** The allowed values of `key_bits`; 0 means that it is not set. */
  readonly keyBits: readonly number[]
  /** The setting that determines the keys made for it on demand; undefined if it makes no keys. */
  readonly generatedBy?: 'curve' | 'key_bits'
}

/** Sizes of generated RSA keys; settings of other pairs may keep such a size. */
const pairBits = { keyBits: [2048, 3072, 4096] } as const
const signing = { ...pairBits, class: 'private', usages: ['sign', 'verify'] } as const
const rsa = { ...pairBits, class: 'private', keyType: CKK.RSA, generatedBy: 'key_bits' } as const
const cipher = { class: 'secret', keyType: CKK.AES, keyBits: [128, 256], usages: ['encrypt', 'decrypt'] } as const

const rows: readonly ManagedMechanism[] = [
  { ...rsa, ...signing, number: CKM.RSA_PKCS, name: 'CKM_RSA_PKCS', padding: 'pkcs1v15' },
  { ...rsa, ...signing, number: CKM.RSA_PKCS_PSS, name: 'CKM_RSA_PKCS_PSS', padding: 'pss' },
  { ...signing, number: CKM.ECDSA, name: 'CKM_ECDSA', keyType: CKK.EC, generatedBy: 'curve' },
  { ...signing, number: CKM.EDDSA, name: 'CKM_EDDSA', keyType: CKK.EC_EDWARDS },
  { ...rsa, number: CKM.RSA_PKCS_OAEP, name: 'CKM_RSA_PKCS_OAEP', usages: ['encrypt', 'decrypt'] },
  { ...cipher, number: CKM.AES_GCM, name: 'CKM_AES_GCM', ivBytes: 12, counted: true },
  { ...cipher, number: CKM.AES_CBC_PAD, name: 'CKM_AES_CBC_PAD', ivBytes: 16, oracle: true },
]

const byNumber: ReadonlyMap<number, ManagedMechanism> = new Map(rows.map((row) => [row.number, row]))

const hexadecimal = (number: number): string => `0x${number.toString(16).padStart(4, '0')}`

/** @throws ApiError 400 that lists the known ones */
export function mechanismOf(number: number): ManagedMechanism {
  const mechanism = byNumber.get(number)
  if (mechanism !== undefined) return mechanism
  const known = rows.map(({ number, name }) => `${hexadecimal(number)} ${name}`).join(', ')
  throw badRequest(`mechanism ${hexadecimal(number)} is not available for managed keys; there are ${known}`)
}

/** Reads `mechanism` of a request: `0x` and hexadecimal digits, or a decimal number. @throws ApiError 400 */
export function readMechanism(text: string): ManagedMechanism {
  if (!/^(0x[0-9a-f]{1,8}|\d{1,9})$/i.test(text)) {
    throw badRequest('mechanism must be the number of a PKCS#11 mechanism, in hexadecimal with 0x before it')
  }
  return mechanismOf(Number(text))
}
