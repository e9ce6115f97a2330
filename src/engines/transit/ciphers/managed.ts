import { after } from '../../../after.ts'
import type { Scheme } from '../../../keys/algorithms/signature.ts'
import type { Use } from '../../../keys/managed/managedkeys.ts'
import type { MaybePromise } from '../../../route.ts'
import { ignoreNonce } from '../input/nonce.ts'
import { warnOfScheme } from '../input/scheme.ts'
import type { VersionOperation } from './operation.ts'

type Message = { readonly bytes: Buffer; readonly aad: Buffer | undefined; readonly nonce: Buffer | undefined }

/** @returns the payload of the ciphertext, preceded by its IV unless the caller gave one */
export const encryptManaged = (operation: VersionOperation, { bytes, aad, nonce }: Message): MaybePromise<Buffer> =>
  withManagedKey(operation, (use) =>
    operation.context.managed.encrypt(use, { bytes, aad, iv: ivOf(operation, use, nonce) }, operation.warn),
  )

/** @param message the payload of the ciphertext, after its IV unless the caller gave one @returns the plaintext */
export const decryptManaged = (operation: VersionOperation, { bytes, aad, nonce }: Message): MaybePromise<Buffer> =>
  withManagedKey(operation, (use) =>
    operation.context.managed.decrypt(
      use,
      { bytes, aad, iv: ivOf(operation, use, nonce) },
      { blind: operation.blind ?? false },
    ),
  )

/** @param chosen whether the caller named a signature algorithm */
export const signManaged = (
  operation: VersionOperation,
  input: Buffer,
  scheme: Scheme,
  chosen: boolean,
): MaybePromise<Buffer> =>
  withManagedKey(operation, (use) => {
    warnOfScheme(operation.context, use.pinned, scheme, operation.warn)
    return operation.context.managed.sign(use, input, scheme, chosen)
  })

export const verifyManaged = (
  operation: VersionOperation,
  input: Buffer,
  signature: Buffer,
  scheme: Scheme,
  chosen: boolean,
): MaybePromise<boolean> =>
  withManagedKey(operation, (use) => {
    warnOfScheme(operation.context, use.pinned, scheme, operation.warn)
    return operation.context.managed.verify(use, input, signature, scheme, chosen)
  })

function withManagedKey<T>(
  { context, ring, version }: VersionOperation,
  work: (use: Use) => MaybePromise<T>,
): MaybePromise<T> {
  const { managedKey, material } = version
  if (managedKey === null) throw new Error(`version ${version.version} of key ${ring.key.id} names no managed key`)
  return after(context.material(material), (pinned) => work({ mount: ring.key.mount, managedKey, pinned }))
}

/** RSA has no IV: a nonce sent by the caller is ignored, as elsewhere. */
function ivOf({ warn }: VersionOperation, { pinned }: Use, nonce: Buffer | undefined): Buffer | undefined {
  if (pinned.algorithm.oaep === undefined) return nonce
  ignoreNonce(nonce, warn)
  return undefined
}
