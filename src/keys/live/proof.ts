import { randomBytes } from 'node:crypto'
import type { Handle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Material } from '../material.ts'
import type { Part } from '../tables.ts'

/**
 * Shows that an object of the token is the private half of the material's public key, by a signature over random bytes.
 * It is found by its CKA_ID, which anybody with the token's PIN can give another key.
 * @throws Error when it is another key
 */
export async function provePrivate(hsm: Hsm, key: Handle, material: Material): Promise<void> {
  const { algorithm, publicKey, row } = material
  if (algorithm.class === 'secret') return
  if (row.part === ('wrapping' satisfies Part)) return proveModulus(hsm, key, material)
  const { signature } = algorithm
  const { scheme } = signature.certification
  const challenge = Buffer.concat([Buffer.from('strongroom proof of possession\0'), randomBytes(32)])
  const { mechanism, message, bytes, encode } = signature.request(challenge, scheme, hsm.capabilities)
  const signed = await hsm.sign(key, mechanism, message, bytes)
  if (!signature.verify(publicKey, challenge, encode ? encode(signed) : signed, scheme)) throw notTheKey(hsm, material)
}

/** For a key that cannot sign: one that only decrypts, which is always RSA. */
async function proveModulus(hsm: Hsm, key: Handle, material: Material): Promise<void> {
  const { modulus } = await hsm.attributes(key, ['modulus'])
  const { n } = material.publicKey.export({ format: 'jwk' })
  const found = modulus?.toString('hex').replace(/^(00)+/, '')
  if (n === undefined || found !== Buffer.from(n, 'base64url').toString('hex')) throw notTheKey(hsm, material)
}

const notTheKey = (hsm: Hsm, { id, row }: Material): Error =>
  new Error(
    `the object in the token ${hsm.token.label} is not the private key of version ${row.version} (${id}): it was replaced`,
  )
