import type { NativeMechanism } from './binding.ts'
import { CK_PARAMS, CKM } from './constants.ts'

/** A PKCS#11 mechanism: its number, and at most one kind of parameter. */
export interface Mechanism {
  readonly type: number
  readonly gcm?: { readonly iv: Uint8Array; readonly aad?: Uint8Array | undefined; readonly tagBits: number }
  /** `hash` is a CKM number, `mgf` a CKG number. */
  readonly pss?: { readonly hash: number; readonly mgf: number; readonly saltLength: number }
  readonly oaep?: { readonly hash: number; readonly mgf: number; readonly label?: Uint8Array | undefined }
  /** The parameter's bytes as they are; only for structures without pointers. */
  readonly raw?: Uint8Array
}

/** CKZ_DATA_SPECIFIED, the only source of an OAEP label (PKCS#11 v3.1 6.1.7). */
const labelSource = 1

/**
 * The form pkcs11js takes. GCM uses the v2.40 structure: the other leaves ulIvBits uninitialised, which NSS refuses.
 */
export function native(mechanism: Mechanism): NativeMechanism {
  const { type, gcm, pss, oaep, raw } = mechanism
  if (gcm !== undefined) {
    const { iv, aad, tagBits } = gcm
    return { mechanism: type, parameter: { type: CK_PARAMS.AES_GCM_V240, iv, ivBits: iv.length * 8, aad, tagBits } }
  }
  if (pss !== undefined) {
    const { hash, mgf, saltLength } = pss
    return { mechanism: type, parameter: { type: CK_PARAMS.RSA_PSS, hashAlg: hash, mgf, saltLen: saltLength } }
  }
  if (oaep !== undefined) {
    const { hash, mgf, label } = oaep
    const parameter = { type: CK_PARAMS.RSA_OAEP, hashAlg: hash, mgf, source: labelSource, sourceData: label }
    return { mechanism: type, parameter }
  }
  return raw === undefined ? { mechanism: type } : { mechanism: type, parameter: raw }
}

const names = new Map<number, string>(Object.entries(CKM).map(([name, type]) => [type, `CKM_${name}`]))

/** The mechanism's name in PKCS#11, for refusals. */
export const mechanismName = (type: number): string => names.get(type) ?? `CKM 0x${type.toString(16)}`

/**
 * Whether the mechanism is an RSA operation (private, as only those run in the token): milliseconds, not microseconds.
 */
export const isRsa = (type: number): boolean => type <= CKM.RSA_PKCS_PSS

/** How many bytes a ciphertext may be longer than its plaintext: the tag, or one block of padding. */
export const overheadBytes = (mechanism: Mechanism): number => (mechanism.gcm ? mechanism.gcm.tagBits / 8 : 16)

/**
 * Whether a blob has a length that AES key wrap can have made: at least 16 bytes, a multiple of 8 (RFC 5649 section
 * 4.1). Asked before the call, because NSS answers a shorter one with CKR_HOST_MEMORY, as if the token were in trouble.
 */
export const fitsMechanism = (type: number, length: number): boolean =>
  type < CKM.AES_KEY_WRAP || type > CKM.AES_KEY_WRAP_KWP || (length >= 16 && length % 8 === 0)
