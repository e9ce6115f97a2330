import type { Attribute, Cryptoki } from '../binding.ts'
import { CKA, CKR } from '../constants.ts'
import { ckrOf } from '../faults.ts'
import { type Mechanism, native, overheadBytes } from '../mechanism.ts'

/** The context of an operation. `keeper` is the session that new session objects belong to; it is never closed. */
export interface Port {
  readonly lib: Cryptoki
  readonly keeper: Buffer
  /** Big enough for any wrapped key (RSA-16384: 9.3 kB); copied from before the next operation begins. */
  readonly scratch: Buffer
}

/** An empty buffer that is not a NULL pointer: SoftHSM answers NULL with CKR_ARGUMENTS_BAD and a stuck session. */
const empty = Buffer.alloc(1).subarray(0, 0)
const solid = (bytes: Uint8Array): Uint8Array => (bytes.length === 0 ? empty : bytes)
const found = 100
/** As long as the longest number of a private key (RSA-8192). */
const zeros = Buffer.alloc(1024)

/**
 * Every operation on the token, as one synchronous function each: the inline executor calls them directly, the threads'
 * executor in a worker. `session` is borrowed for this operation alone. Keys are bare CK_OBJECT_HANDLEs, checked
 * before. Results never share memory with anything that is used again.
 */
export const operations = {
  /** C_Encrypt, ciphertext with tag. */
  encrypt({ lib }: Port, session: Buffer, key: Uint8Array, mechanism: Mechanism, plaintext: Uint8Array): Buffer {
    lib.C_EncryptInit(session, native(mechanism), key)
    return lib.C_Encrypt(session, solid(plaintext), Buffer.allocUnsafe(plaintext.length + overheadBytes(mechanism)))
  },

  /**
   * C_Decrypt. SoftHSM wants room for the whole ciphertext, tag included. A forged tag fails without a stack trace,
   * which would cost more than the decryption.
   * @param _forgedTag the code that leaves the session as it was (Connection)
   */
  decrypt(
    { lib }: Port,
    session: Buffer,
    key: Uint8Array,
    mechanism: Mechanism,
    ciphertext: Uint8Array,
    _forgedTag?: number,
  ): Buffer {
    lib.C_DecryptInit(session, native(mechanism), key)
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    try {
      return lib.C_Decrypt(session, solid(ciphertext), Buffer.allocUnsafe(ciphertext.length || 1))
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
  },

  /**
   * For the self-test: the code with which C_Decrypt refuses a forged tag, if the same session then decrypts; C_Decrypt
   * ends the operation either way (PKCS#11 v3.1 5.10.2), but tokens disagree.
   */
  forge(
    { lib }: Port,
    session: Buffer,
    key: Uint8Array,
    mechanism: Mechanism,
    forged: Uint8Array,
    good: Uint8Array,
  ): number | undefined {
    const refusal = (ciphertext: Uint8Array): number | undefined => {
      try {
        lib.C_DecryptInit(session, native(mechanism), key)
        lib.C_Decrypt(session, ciphertext, Buffer.allocUnsafe(ciphertext.length))
        return undefined
      } catch (error) {
        const code = ckrOf(error)
        if (code === undefined) throw error
        return code
      }
    }
    const code = refusal(forged)
    return refusal(good) === undefined ? code : undefined
  },

  /** C_Sign, MACs too. The output is exact: NSS refuses any other size for EdDSA. */
  sign(
    { lib }: Port,
    session: Buffer,
    key: Uint8Array,
    mechanism: Mechanism,
    message: Uint8Array,
    signatureLength: number,
  ): Buffer {
    lib.C_SignInit(session, native(mechanism), key)
    return lib.C_Sign(session, solid(message), Buffer.allocUnsafe(signatureLength))
  },

  /** Digest of prefix ‖ value of the key ‖ suffix, without the key leaving the token. */
  digestKey(
    { lib }: Port,
    session: Buffer,
    mechanism: number,
    prefix: Uint8Array,
    key: Uint8Array,
    suffix: Uint8Array,
    length: number,
  ): Buffer {
    lib.C_DigestInit(session, { mechanism })
    if (prefix.length > 0) lib.C_DigestUpdate(session, prefix)
    lib.C_DigestKey(session, key)
    if (suffix.length > 0) lib.C_DigestUpdate(session, suffix)
    return lib.C_DigestFinal(session, Buffer.allocUnsafe(length))
  },

  random({ lib }: Port, session: Buffer, length: number): Buffer {
    return lib.C_GenerateRandom(session, Buffer.allocUnsafe(length))
  },

  wrap({ lib, scratch }: Port, session: Buffer, kek: Uint8Array, mechanism: number, key: Uint8Array): Buffer {
    return Buffer.from(lib.C_WrapKey(session, { mechanism }, kek, key, scratch))
  },

  unwrap(
    { lib, keeper }: Port,
    _session: Buffer,
    kek: Uint8Array,
    mechanism: Mechanism,
    blob: Uint8Array,
    template: readonly Attribute[],
  ): Buffer {
    return lib.C_UnwrapKey(keeper, native(mechanism), kek, solid(blob), template)
  },

  generateKey({ lib, keeper }: Port, _session: Buffer, mechanism: number, template: readonly Attribute[]): Buffer {
    return lib.C_GenerateKey(keeper, { mechanism }, template)
  },

  generateKeyPair(
    { lib, keeper }: Port,
    _session: Buffer,
    mechanism: number,
    publicTemplate: readonly Attribute[],
    privateTemplate: readonly Attribute[],
  ): { publicKey: Buffer; privateKey: Buffer } {
    return lib.C_GenerateKeyPair(keeper, { mechanism }, publicTemplate, privateTemplate)
  },

  create({ lib, keeper }: Port, _session: Buffer, template: readonly Attribute[]): Buffer {
    return lib.C_CreateObject(keeper, template)
  },

  destroy({ lib }: Port, session: Buffer, object: Uint8Array): void {
    lib.C_DestroyObject(session, object)
  },

  find({ lib }: Port, session: Buffer, template: readonly Attribute[]): Buffer[] {
    lib.C_FindObjectsInit(session, template)
    const objects: Buffer[] = []
    for (;;) {
      const some = lib.C_FindObjects(session, found)
      objects.push(...some)
      if (some.length < found) break
    }
    lib.C_FindObjectsFinal(session)
    return objects
  },

  /** Values in the given order; undefined for an attribute that the object lacks or does not show. */
  attributes({ lib }: Port, session: Buffer, object: Uint8Array, list: readonly Attribute[]): (Buffer | undefined)[] {
    const read = (some: readonly Attribute[]): (Buffer | undefined)[] | undefined => {
      try {
        return lib.C_GetAttributeValue(session, object, some).map(({ value }) => value)
      } catch (error) {
        const code = ckrOf(error)
        if (code === CKR.ATTRIBUTE_TYPE_INVALID || code === CKR.ATTRIBUTE_SENSITIVE) return undefined
        throw error
      }
    }
    return read(list) ?? list.map((one) => read([one])?.[0])
  },

  /**
   * Attributes of a private key that was made readable. pkcs11js frees its copies of them without wiping: attributes of
   * the same length, all zeros, are set at once on the public key, which is about to be destroyed, so that they
   * overwrite that memory. Whether the token accepts them does not matter.
   */
  reveal(
    { lib }: Port,
    session: Buffer,
    key: Uint8Array,
    list: readonly Attribute[],
    beside: Uint8Array,
  ): (Buffer | undefined)[] {
    const values = lib.C_GetAttributeValue(session, key, list).map(({ value }) => value)
    const cover = values.map((value) => ({ type: CKA.LABEL, value: zeros.subarray(0, value?.length ?? 0) }))
    try {
      lib.C_SetAttributeValue(session, beside, cover)
    } catch (error) {
      if (ckrOf(error) === undefined) throw error
    }
    return values
  },
}

export type Operation = keyof typeof operations
type Parts<N extends Operation> = Parameters<(typeof operations)[N]>
/** An operation's arguments besides its port and session. */
export type Arguments<N extends Operation> = Parts<N> extends [Port, Buffer, ...infer Rest] ? Rest : never
export type Result<N extends Operation> = ReturnType<(typeof operations)[N]>

/** Operations that leave an object behind: repeated only where the first call cannot have run. */
export const leavesObject = (name: Operation): boolean =>
  name === 'create' || name === 'generateKey' || name === 'generateKeyPair' || name === 'unwrap'
