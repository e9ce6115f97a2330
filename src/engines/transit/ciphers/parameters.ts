import { decodeOptional } from '../../../crypto/base64.ts'
import { checkPadding } from './rsa.ts'

/** The decoded inputs of an encryption or decryption besides its text. */
export interface CipherParameters {
  readonly aad: Buffer | undefined
  /** Derivation context. */
  readonly derivation: Buffer | undefined
  readonly nonce: Buffer | undefined
  /** 0 is the latest. */
  readonly version: number
}

/** The fields of every encryption and decryption. */
export interface ParameterFields {
  readonly associated_data?: string | undefined
  readonly context?: string | undefined
  readonly nonce?: string | undefined
  readonly key_version?: number | undefined
  readonly padding_scheme?: string | undefined
}

/** @throws ApiError 400 naming a field that is not base64, or a padding that is not offered */
export function readParameters(input: ParameterFields): CipherParameters {
  checkPadding(input.padding_scheme)
  return {
    aad: decodeOptional('associated_data', input.associated_data),
    derivation: decodeOptional('context', input.context),
    nonce: decodeOptional('nonce', input.nonce),
    version: input.key_version ?? 0,
  }
}
