import type { Hash } from '../../crypto/hashes.ts'
import { decodeOaepOr } from '../../crypto/oaep.ts'
import { CKM } from '../../hsm/constants.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Handles } from '../live/handles.ts'
import { transportBytes } from '../making/transport.ts'
import type { Material } from '../material.ts'

/** A wrapped key on its way in: its blob (AES-KWP), and the transport key it is under. */
export interface Envelope {
  readonly transport: Buffer
  readonly blob: Buffer
}

/**
 * Opens what PKCS#11's CKM_RSA_AES_KEY_WRAP makes: RSA-OAEP of an AES-256 key, and the key wrapped by that. The token
 * does the RSA, the host undoes the padding in constant time. Wrong padding is not an error here: it gives a random
 * transport key, so that trying ciphertexts reveals only a failure of the last step (Manger 2001).
 * @param wrappingKey an RSA key @param ciphertext longer than its modulus
 * @returns an envelope that the caller wipes
 * @throws ApiError 400 naming the mechanism that the token lacks
 */
export async function openEnvelope(
  { hsm, handles }: { hsm: Hsm; handles: Handles },
  wrappingKey: Material,
  hash: Hash,
  ciphertext: Buffer,
): Promise<Envelope> {
  hsm.capabilities.require('rsa-raw')
  const modulus = Buffer.from(wrappingKey.publicKey.export({ format: 'jwk' }).n ?? '', 'base64url')
  const head = ciphertext.subarray(0, modulus.length)
  const block = Buffer.alloc(modulus.length)
  // A number not below the modulus cannot come from this key, which is public; tokens refuse it in different ways.
  if (Buffer.compare(head, modulus) < 0) {
    const raw = await handles.use(wrappingKey, (key) => hsm.decrypt(key, { type: CKM.RSA_X_509 }, head))
    // Some tokens leave out zeros at the front.
    block.set(raw, block.length - raw.length)
    raw.fill(0)
  }
  const transport = decodeOaepOr(block, hash, await hsm.random(transportBytes))
  block.fill(0)
  return { transport, blob: ciphertext.subarray(modulus.length) }
}
