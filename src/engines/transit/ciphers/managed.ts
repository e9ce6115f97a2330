import { after } from '../../../after.ts'
import type { Use } from '../../../keys/managed/keys.ts'
import type { Scheme } from '../../../keys/use/signer.ts'
import type { MaybePromise } from '../../../route.ts'
import type { TransitContext } from '../context.ts'
import { ignoreNonce } from '../input/nonce.ts'
import type { Ring } from '../ring/readring.ts'
import type { Version } from '../ring/ring.ts'

/** A version of a managed key, to be used. */
export interface ManagedVersion {
  readonly context: TransitContext
  readonly ring: Ring
  readonly version: Version
  warn(text: string): void
}

type Message = { readonly bytes: Buffer; readonly aad: Buffer | undefined; readonly nonce: Buffer | undefined }

/** @returns the payload of the ciphertext; behind its IV, where the caller gave none */
export const encryptManaged = (version: ManagedVersion, { bytes, aad, nonce }: Message): MaybePromise<Buffer> =>
  use(version, (one) => version.context.managed.encrypt(one, { bytes, aad, iv: ivOf(version, one, nonce) }))

export const decryptManaged = (version: ManagedVersion, { bytes, aad, nonce }: Message): MaybePromise<Buffer> =>
  use(version, (one) => version.context.managed.decrypt(one, { bytes, aad, iv: ivOf(version, one, nonce) }))

/** @param chosen whether the caller named a signature algorithm */
export const signManaged = (
  version: ManagedVersion,
  input: Buffer,
  scheme: Scheme,
  chosen: boolean,
): MaybePromise<Buffer> => use(version, (one) => version.context.managed.sign(one, input, scheme, chosen))

export const verifyManaged = (
  version: ManagedVersion,
  input: Buffer,
  signature: Buffer,
  scheme: Scheme,
  chosen: boolean,
): MaybePromise<boolean> => use(version, (one) => version.context.managed.verify(one, input, signature, scheme, chosen))

function use<T>({ context, ring, version }: ManagedVersion, work: (use: Use) => MaybePromise<T>): MaybePromise<T> {
  const { managedKey, material } = version
  if (managedKey === null) throw new Error(`version ${version.version} of key ${ring.key.id} names no managed key`)
  return after(context.material(material), (pinned) => work({ mount: ring.key.mount, managedKey, pinned }))
}

/** RSA has no IV: what a caller sends as one is ignored, as elsewhere. */
function ivOf({ warn }: ManagedVersion, { pinned }: Use, nonce: Buffer | undefined): Buffer | undefined {
  if (pinned.algorithm.kind !== 'rsa') return nonce
  ignoreNonce(nonce, warn)
  return undefined
}
