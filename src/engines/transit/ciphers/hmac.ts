import { after } from '../../../after.ts'
import { hashes } from '../../../crypto/hashes.ts'
import { badRequest } from '../../../errors.ts'
import type { MaybePromise } from '../../../route.ts'
import type { VersionOperation } from './operation.ts'

/**
 * HMAC of the message under the version's secret, which for type hmac is the key itself.
 * @throws ApiError 400 for an unknown hash
 */
export function hmac(
  { context, version, warn }: VersionOperation,
  hashName: string,
  message: Buffer,
): MaybePromise<Buffer> {
  const hash = hashes.get(hashName)
  if (hash === undefined) throw badRequest(`unsupported algorithm "${hashName}"`)
  context.approval.warn(warn, hash)
  const { material, hmacMaterial } = version
  return after(context.material(hmacMaterial ?? material), (secret) => context.hmacs.mac(secret, hash, message))
}
