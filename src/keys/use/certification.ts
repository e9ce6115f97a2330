import { TAG, write } from '../../crypto/der.ts'
import { hashOf } from '../../crypto/hashes.ts'
import type { Material } from '../material.ts'
import type { Scheme } from './signer.ts'

/** How a key signs certification requests: the AlgorithmIdentifier (DER) and the signer's scheme that makes such a signature. */
export interface Certification {
  readonly algorithm: Buffer
  readonly scheme: Scheme
}

/** RFC 4055 section 5, RFC 8410 section 3, RFC 5758 section 3.2. */
const identifiers = {
  rsa: write(TAG.SEQUENCE, Buffer.from('06092a864886f70d01010b', 'hex'), write(TAG.NULL)),
  ed25519: write(TAG.SEQUENCE, Buffer.from('06032b6570', 'hex')),
  'sha2-256': write(TAG.SEQUENCE, Buffer.from('06082a8648ce3d040302', 'hex')),
  'sha2-384': write(TAG.SEQUENCE, Buffer.from('06082a8648ce3d040303', 'hex')),
  'sha2-512': write(TAG.SEQUENCE, Buffer.from('06082a8648ce3d040304', 'hex')),
} as const

/** The reference's choice: the hash as strong as the curve, PKCS#1 v1.5 with SHA-256 for RSA. */
export function certificationOf({ algorithm }: Material): Certification {
  const scheme = (hash: 'sha2-256' | 'sha2-384' | 'sha2-512'): Scheme => ({
    hash: hashOf(hash),
    prehashed: false,
    padding: 'pkcs1v15',
    saltLength: 'hash',
    marshaling: 'asn1',
  })
  if (algorithm.kind === 'rsa') return { algorithm: identifiers.rsa, scheme: scheme('sha2-256') }
  if (algorithm.kind === 'ed25519') return { algorithm: identifiers.ed25519, scheme: scheme('sha2-256') }
  if (algorithm.kind !== 'ec') throw new Error(`keys of type ${algorithm.name} sign nothing`)
  const { coordinateBytes } = algorithm.curve
  const hash = coordinateBytes <= 32 ? 'sha2-256' : coordinateBytes <= 48 ? 'sha2-384' : 'sha2-512'
  return { algorithm: identifiers[hash], scheme: scheme(hash) }
}
