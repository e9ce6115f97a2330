import { PKCS11 } from 'pkcs11js'

/** A mechanism of pkcs11js; `parameter` is one of its parameter objects (`type` is a CK_PARAMS number) or raw bytes. */
export interface NativeMechanism {
  readonly mechanism: number
  readonly parameter?: object
}

export interface Attribute {
  readonly type: number
  readonly value?: number | boolean | string | Uint8Array
}

/** CK_TOKEN_INFO and CK_SESSION_INFO, as far as used. */
interface Flags {
  readonly flags: number
}

/**
 * The PKCS#11 calls this server makes, all synchronous: pkcs11js's *Async forms leak templates and their callback forms
 * read freed buffers. Handles, slots and sessions are 8-byte buffers. pkcs11js's own types ask for Buffer where the
 * native code takes any view, and promise async forms that we must not use; hence this narrower interface.
 */
export interface Cryptoki {
  C_Initialize(options: { flags: number; libraryParameters?: string }): void
  C_Finalize(): void
  C_GetInfo(): { readonly libraryVersion: { readonly major: number; readonly minor: number } }
  C_GetTokenInfo(slot: Uint8Array): Flags
  C_OpenSession(slot: Uint8Array, flags: number): Buffer
  C_CloseSession(session: Uint8Array): void
  C_GetSessionInfo(session: Uint8Array): Flags
  C_Login(session: Uint8Array, user: number, pin: string): void
  C_CreateObject(session: Uint8Array, template: readonly Attribute[]): Buffer
  C_DestroyObject(session: Uint8Array, object: Uint8Array): void
  C_FindObjectsInit(session: Uint8Array, template: readonly Attribute[]): void
  C_FindObjects(session: Uint8Array, most: number): Buffer[]
  C_FindObjectsFinal(session: Uint8Array): void
  C_GetAttributeValue(session: Uint8Array, object: Uint8Array, template: readonly Attribute[]): { value?: Buffer }[]
  C_SetAttributeValue(session: Uint8Array, object: Uint8Array, template: readonly Attribute[]): void
  C_EncryptInit(session: Uint8Array, mechanism: NativeMechanism, key: Uint8Array): void
  C_Encrypt(session: Uint8Array, plaintext: Uint8Array, output: Buffer): Buffer
  C_DecryptInit(session: Uint8Array, mechanism: NativeMechanism, key: Uint8Array): void
  C_Decrypt(session: Uint8Array, ciphertext: Uint8Array, output: Buffer): Buffer
  C_SignInit(session: Uint8Array, mechanism: NativeMechanism, key: Uint8Array): void
  C_Sign(session: Uint8Array, message: Uint8Array, output: Buffer): Buffer
  C_DigestInit(session: Uint8Array, mechanism: NativeMechanism): void
  C_DigestUpdate(session: Uint8Array, part: Uint8Array): void
  C_DigestKey(session: Uint8Array, key: Uint8Array): void
  C_DigestFinal(session: Uint8Array, output: Buffer): Buffer
  C_GenerateRandom(session: Uint8Array, output: Buffer): Buffer
  C_GenerateKey(session: Uint8Array, mechanism: NativeMechanism, template: readonly Attribute[]): Buffer
  C_GenerateKeyPair(
    session: Uint8Array,
    mechanism: NativeMechanism,
    publicTemplate: readonly Attribute[],
    privateTemplate: readonly Attribute[],
  ): { publicKey: Buffer; privateKey: Buffer }
  C_WrapKey(session: Uint8Array, mechanism: NativeMechanism, kek: Uint8Array, key: Uint8Array, output: Buffer): Buffer
  C_UnwrapKey(
    session: Uint8Array,
    mechanism: NativeMechanism,
    kek: Uint8Array,
    blob: Uint8Array,
    template: readonly Attribute[],
  ): Buffer
}

/**
 * Maps the module into the process and takes its function list; calls nothing in it.
 * @throws Error when the file cannot be loaded
 */
export function loadLibrary(library: string): PKCS11 & Cryptoki {
  const lib = new PKCS11()
  lib.load(library)
  return lib as PKCS11 & Cryptoki
}
