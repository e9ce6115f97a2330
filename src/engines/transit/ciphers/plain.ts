import { after } from '../../../after.ts'
import type { Data, MaybePromise } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { decodeField, decodeOptional } from '../input/base64.ts'
import { ignoreNonce } from '../input/nonce.ts'
import { tag } from '../input/tagged.ts'
import { managedType } from '../ring/managedtype.ts'
import type { Ring } from '../ring/readring.ts'
import type { Version } from '../ring/ring.ts'
import { versionToMake } from '../ring/versions.ts'
import { encryptDerived } from './derived.ts'
import { encryptManaged } from './managed.ts'
import { checkPadding, encryptRsa } from './rsa.ts'

type Warn = (text: string) => void

/** How a caller wants something encrypted, decoded. */
export interface Wish {
  readonly aad: Buffer | undefined
  /** Derivation context. */
  readonly derivation: Buffer | undefined
  readonly nonce: Buffer | undefined
  /** 0 is the latest. */
  readonly version: number
}

export interface Plain extends Wish {
  readonly plaintext: Buffer
}

/** The fields that everything that encrypts has. */
export interface WishInput {
  readonly associated_data?: string | undefined
  readonly context?: string | undefined
  readonly nonce?: string | undefined
  readonly key_version?: number | undefined
  readonly padding_scheme?: string | undefined
}

/** @throws ApiError 400 that names the field which is no base64, or cannot be had */
export function readWish(input: WishInput): Wish {
  checkPadding(input.padding_scheme)
  return {
    aad: decodeOptional('associated_data', input.associated_data),
    derivation: decodeOptional('context', input.context),
    nonce: decodeOptional('nonce', input.nonce),
    version: input.key_version ?? 0,
  }
}

/** @throws ApiError 400, as readWish */
export function readPlain(input: WishInput & { readonly plaintext?: string | undefined }): Plain {
  const plaintext = decodeField('plaintext', input.plaintext ?? '')
  return { plaintext, ...readWish(input) }
}

/**
 * Encrypts under the version that is asked for. @returns what encrypt, rewrap and datakey answer of it
 * @throws ApiError 400 when that version must not encrypt, keys of the type do not, or something is missing
 */
export function encryptPlain(context: TransitContext, ring: Ring, plain: Plain, warn: Warn): MaybePromise<Data> {
  const found = versionToMake(ring, plain.version, 'encryption')
  const { version } = found
  return after(payloadOf(context, ring, found, plain, warn), (payload) => ({
    ciphertext: tag(version, payload.toString('base64')),
    key_version: version,
  }))
}

function payloadOf(
  context: TransitContext,
  ring: Ring,
  version: Version,
  plain: Plain,
  warn: Warn,
): MaybePromise<Buffer> {
  if (ring.key.derived) return encryptDerived({ context, ring, version, warn }, plain)
  if (ring.key.type === managedType) {
    return encryptManaged({ context, ring, version, warn }, { ...plain, bytes: plain.plaintext })
  }
  ignoreNonce(plain.nonce, warn)
  return after(context.material(version.material), (key) => {
    context.approval.warn(warn, key.algorithm)
    if (key.algorithm.kind === 'rsa') return encryptRsa(context, key, plain)
    const { plaintext, aad } = plain
    return after(context.cipher.encrypt(key, { plaintext, aad }), ({ iv, sealed, warning }) => {
      if (warning) warn(warning)
      return Buffer.concat([iv, sealed])
    })
  })
}
