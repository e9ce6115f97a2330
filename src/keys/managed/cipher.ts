import { createHash, randomBytes } from 'node:crypto'
import { badRequest } from '../../errors.ts'
import { CKM } from '../../hsm/constants.ts'
import { HsmRefusal } from '../../hsm/faults.ts'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Mechanism } from '../../hsm/mechanism.ts'
import type { MaybePromise } from '../../route.ts'
import { nameRefusal } from '../use/refusal.ts'
import type { ManagedMechanism } from './mechanism.ts'

const tagBytes = 16

/**
 * The input of encryption or decryption. `iv`: the caller's, who must keep it; without one it precedes the ciphertext.
 */
export interface Message {
  readonly bytes: Uint8Array
  readonly aad?: Uint8Array | undefined
  readonly iv?: Uint8Array | undefined
}

type Use = <T>(work: (key: Handle) => MaybePromise<T>) => MaybePromise<T>

/** AES with a key of somebody else's token. @returns ciphertext, after its IV if that is ours */
export async function encryptAes(hsm: Hsm, mechanism: ManagedMechanism, use: Use, message: Message): Promise<Buffer> {
  const iv = checkedIv(mechanism, message) ?? randomBytes(mechanism.ivBytes ?? 0)
  const sealed = await use((key) => hsm.encrypt(key, native(mechanism, iv, message.aad), message.bytes))
  return message.iv === undefined ? Buffer.concat([iv, sealed]) : sealed
}

/** @throws ApiError 400 with one text, whatever was wrong */
export async function decryptAes(hsm: Hsm, mechanism: ManagedMechanism, use: Use, message: Message): Promise<Buffer> {
  const { ivBytes = 0 } = mechanism
  const given = checkedIv(mechanism, message)
  const iv = given ?? message.bytes.subarray(0, ivBytes)
  const sealed = given ? message.bytes : message.bytes.subarray(ivBytes)
  if (!wellFormed(mechanism, iv, sealed)) throw failed()
  try {
    return await use((key) => hsm.decrypt(key, native(mechanism, iv, message.aad), sealed))
  } catch (error) {
    throw error instanceof HsmRefusal ? failed(error) : error
  }
}

const checkedText = Buffer.from('check of an AES key in somebody else’s token')

/**
 * Identifies a secret key: SHA-256 over its encryption of a fixed text under an IV of zeros. Neither ciphertext nor tag
 * is ever shown, so a caller who chooses the same IV learns nothing.
 */
export async function checkValueOf(hsm: Hsm, mechanism: ManagedMechanism, key: Handle): Promise<Buffer> {
  const iv = Buffer.alloc(mechanism.ivBytes ?? 0)
  const sealed = await nameRefusal(mechanism.name, () =>
    hsm.encrypt(key, native(mechanism, iv, undefined), checkedText),
  )
  return createHash('sha256').update(sealed).digest()
}

const failed = (cause?: unknown): Error => badRequest('cipher: message authentication failed', { cause })

/** A GCM ciphertext ends in its tag; a CBC one is whole blocks, at least one. */
const wellFormed = ({ number, ivBytes }: ManagedMechanism, iv: Uint8Array, sealed: Uint8Array): boolean =>
  iv.length === ivBytes && sealed.length >= tagBytes && (number === CKM.AES_GCM || sealed.length % 16 === 0)

/**
 * @throws ApiError 400 for an IV of the wrong length, or associated data with a mechanism that authenticates nothing
 */
function checkedIv({ name, number, ivBytes = 0 }: ManagedMechanism, { iv, aad }: Message): Uint8Array | undefined {
  if (aad !== undefined && number !== CKM.AES_GCM) {
    throw badRequest(`'associated_data' provided for ${name}, which authenticates nothing`)
  }
  if (iv === undefined || iv.length === ivBytes) return iv
  throw badRequest(`base64-decoded nonce must be ${ivBytes} bytes long but given ${iv.length} bytes`)
}

const native = ({ number }: ManagedMechanism, iv: Uint8Array, aad: Uint8Array | undefined): Mechanism =>
  number === CKM.AES_GCM ? { type: number, gcm: { iv, aad, tagBits: 8 * tagBytes } } : { type: number, raw: iv }
