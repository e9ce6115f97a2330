import { constants, createCipheriv, createPublicKey, publicEncrypt, randomBytes } from 'node:crypto'
import type { Client } from '../../support/client.ts'
import { base64, done } from '../node.ts'

/** Names of hashes on the wire, beside node:crypto's. */
export const hashFunctions = [
  ['SHA1', 'sha1'],
  ['SHA224', 'sha224'],
  ['SHA256', 'sha256'],
  ['SHA384', 'sha384'],
  ['SHA512', 'sha512'],
] as const

/** AES-KWP (RFC 5649) by OpenSSL. */
export function keyWrap(kek: Uint8Array, key: Uint8Array): Buffer {
  const cipher = createCipheriv('id-aes256-wrap-pad', kek, Buffer.from('a65959a6', 'hex'))
  return Buffer.concat([cipher.update(key), cipher.final()])
}

/** RSA-OAEP of `secret` to a PEM. */
export const oaep = (pem: string, secret: Uint8Array, oaepHash: string): Buffer =>
  publicEncrypt({ key: createPublicKey(pem), padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash }, secret)

/** The body's `ciphertext` for a key: as a client builds it. */
export function envelopeOf(pem: string, key: Uint8Array, oaepHash = 'sha256'): string {
  const transport = randomBytes(32)
  return base64(Buffer.concat([oaep(pem, transport, oaepHash), keyWrap(transport, key)]))
}

export const wrappingKeyOf = async (client: Client, mount = 'transit'): Promise<string> =>
  (await done(client.get(`${mount}/wrapping_key`))).string('data.public_key')

/** Imports raw bytes or PKCS#8 under a name. */
export async function importKey(
  client: Client,
  name: string,
  key: Uint8Array,
  settings: Readonly<Record<string, unknown>>,
): Promise<void> {
  const ciphertext = envelopeOf(await wrappingKeyOf(client), key)
  await done(client.post(`transit/keys/${name}/import`, { ciphertext, ...settings }))
}
