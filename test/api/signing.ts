import { execFileSync } from 'node:child_process'
import { createPublicKey, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '../support/client.ts'

/** Names of the hashes on the wire, with node:crypto's and OpenSSL's. */
export const hashNames = [
  ['sha1', 'sha1'],
  ['sha2-224', 'sha224'],
  ['sha2-256', 'sha256'],
  ['sha2-384', 'sha384'],
  ['sha2-512', 'sha512'],
  ['sha3-224', 'sha3-224'],
  ['sha3-256', 'sha3-256'],
  ['sha3-384', 'sha3-384'],
  ['sha3-512', 'sha3-512'],
] as const

/**
 * The warnings of an HMAC by version 1 of a key that has made one with this hash before: SoftHSM has none with SHA-3.
 */
export function openedWarnings(algorithm: string): string[] | null {
  const [, bits] = /^sha3-(\d+)$/.exec(algorithm) ?? []
  if (bits === undefined) return null
  return [
    `the HSM lacks CKM_SHA3_${bits}_HMAC: the HMAC secret of version 1 was in the server’s memory for this request`,
  ]
}

/** The public key of version 1, as its reader gets it. */
export async function publicKeyOf(client: Client, name: string): Promise<KeyObject> {
  const { body } = await client.get(`transit/keys/${name}`)
  const entry = (body as { data: { keys: Record<string, { public_key: string }> } }).data.keys[1]
  const text = entry?.public_key ?? ''
  if (text.startsWith('-----')) return createPublicKey(text)
  const x = Buffer.from(text, 'base64').toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}

/** The bytes of a `vault:vN:` signature. */
export const bytesOf = (signature: string, encoding: 'base64' | 'base64url' = 'base64'): Buffer =>
  Buffer.from(signature.split(':')[2] ?? '', encoding)

/** A second opinion: what `openssl` says of a signature over a file. */
export function opensslVerifies(
  key: KeyObject,
  message: Uint8Array,
  signature: Uint8Array,
  args: readonly string[],
): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'sr-openssl-'))
  const [pem, input, sig] = ['key.pem', 'input', 'signature'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(pem, key.export({ type: 'spki', format: 'pem' }))
  writeFileSync(input, message)
  writeFileSync(sig, signature)
  try {
    const out = execFileSync('openssl', [...args, pem, '-sigfile', sig, '-in', input], {
      encoding: 'utf8',
      stdio: 'pipe',
    })
    return /Verified Successfully/.test(out)
  } catch {
    return false
  } finally {
    rmSync(directory, { recursive: true })
  }
}
