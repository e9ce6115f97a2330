import { after } from '../../../after.ts'
import { type Hash, hashes } from '../../../crypto/hashes.ts'
import { badRequest } from '../../../errors.ts'
import type { Material } from '../../../keys/material.ts'
import type { MaybePromise } from '../../../route.ts'
import { touchRing } from '../ring/ringcaches.ts'
import type { VersionOperation } from './operation.ts'

/**
 * HMAC of the message under the version's secret, which for type hmac is the key itself. If the token cannot make it,
 * the secret is opened in memory, with a warning.
 * @throws ApiError 400 for an unknown hash, and where the key or strict mode forbids opening the secret
 */
export function hmac(operation: VersionOperation, hashName: string, message: Buffer): MaybePromise<Buffer> {
  const { context, ring, version, warn } = operation
  const hash = hashes.get(hashName)
  if (hash === undefined) throw badRequest(`unsupported algorithm "${hashName}"`)
  context.approval.warn(warn, hash)
  const { hmacs } = context
  return after(context.material(version.hmacMaterial ?? version.material), (secret) => {
    if (ring.key.hmacInHsmOnly && hmacs.obstacle(secret, hash)) throw hmacs.refusal('hmac_in_hsm_only', secret, hash)
    return hmacs.native(secret, hash) ? hmacs.mac(secret, hash, message) : opened(operation, secret, hash, message)
  })
}

async function opened(
  { context: { hmacs, rings }, ring, warn }: VersionOperation,
  secret: Material,
  hash: Hash,
  message: Buffer,
): Promise<Buffer> {
  const { id, mount, name } = ring.key
  const mac = await hmacs.macOpened(secret, hash, message, {
    // The key's row is locked first, as in every change of a key.
    lock: async (tx) => {
      const key = await rings.lockRow(tx, { uuid: mount }, name)
      if (key?.id === id && key.hmacInHsmOnly) throw hmacs.refusal('hmac_in_hsm_only', secret, hash)
    },
    touch: (tx) => touchRing(tx, ring.key),
  })
  const obstacle = hmacs.obstacle(secret, hash)
  if (obstacle?.opened === 'once') warn(`${obstacle.why}: its secret was in the server’s memory once, to be padded`)
  if (obstacle?.opened === 'always') {
    const whose = `the HMAC secret of version ${secret.row.version}`
    warn(`${obstacle.why}: ${whose} was in the server’s memory for this request`)
  }
  return mac
}
