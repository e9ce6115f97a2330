import { type Element, expect, NotDer, readAll, readOne, TAG, write } from './der.ts'
import { hashOf } from './hashes.ts'
import type { Material } from './material.ts'
import type { Scheme } from './signer.ts'

/** Certification requests (PKCS#10, RFC 2986) for keys that only sign. */

/** AlgorithmIdentifier of a signature, whole; and how the signer makes such a one. */
interface SignatureForm {
  readonly identifier: Buffer
  readonly scheme: Scheme
}

const attributesTag = 0xa0

const identifiers = {
  rsa: write(TAG.SEQUENCE, Buffer.from('06092a864886f70d01010b', 'hex'), write(TAG.NULL)),
  ed25519: write(TAG.SEQUENCE, Buffer.from('06032b6570', 'hex')),
  'sha2-256': write(TAG.SEQUENCE, Buffer.from('06082a8648ce3d040302', 'hex')),
  'sha2-384': write(TAG.SEQUENCE, Buffer.from('06082a8648ce3d040303', 'hex')),
  'sha2-512': write(TAG.SEQUENCE, Buffer.from('06082a8648ce3d040304', 'hex')),
} as const

/** The reference's choice: the hash as strong as the curve, PKCS#1 v1.5 with SHA-256 for RSA. */
function formOf({ algorithm }: Material): SignatureForm {
  const scheme = (hash: 'sha2-256' | 'sha2-384' | 'sha2-512'): Scheme => ({
    hash: hashOf(hash),
    prehashed: false,
    padding: 'pkcs1v15',
    saltLength: 'hash',
    marshaling: 'asn1',
  })
  if (algorithm.kind === 'rsa') return { identifier: identifiers.rsa, scheme: scheme('sha2-256') }
  if (algorithm.kind === 'ed25519') return { identifier: identifiers.ed25519, scheme: scheme('sha2-256') }
  if (algorithm.kind !== 'ec') throw new Error(`keys of type ${algorithm.name} sign nothing`)
  const { coordinateBytes } = algorithm.curve
  const hash = coordinateBytes <= 32 ? 'sha2-256' : coordinateBytes <= 48 ? 'sha2-384' : 'sha2-512'
  return { identifier: identifiers[hash], scheme: scheme(hash) }
}

/** What a request of somebody else says besides its key: subject and attributes, as they are. */
export interface Template {
  readonly subject: Buffer
  readonly attributes: Buffer
}

export const emptyTemplate: Template = { subject: write(TAG.SEQUENCE), attributes: write(attributesTag) }

/** Its signature is nobody's business: another is made. @throws NotDer */
export function readTemplate(der: Buffer): Template {
  const [info, algorithm, signature] = readAll(readOne(der, TAG.SEQUENCE))
  expect(algorithm, TAG.SEQUENCE)
  expect(signature, TAG.BITS)
  const [version, subject, key, attributes, ...more] = readAll(expect(info, TAG.SEQUENCE))
  if (!expect(version, TAG.INTEGER).equals(Buffer.alloc(1)) || more.length > 0) throw new NotDer('no such version')
  expect(key, TAG.SEQUENCE)
  return {
    subject: write(TAG.SEQUENCE, checked(expect(subject, TAG.SEQUENCE))),
    attributes: write(attributesTag, attributes === undefined ? Buffer.alloc(0) : checked(contentsOf(attributes))),
  }
}

/** @throws NotDer */
const contentsOf = (attributes: Element): Buffer => expect(attributes, attributesTag)

function checked(contents: Buffer): Buffer {
  readAll(contents)
  return contents
}

/** @param sign makes the signature over exactly the bytes it is given @returns DER */
export async function makeRequest(
  key: Material,
  { subject, attributes }: Template,
  sign: (input: Buffer, scheme: Scheme) => Promise<Buffer> | Buffer,
): Promise<Buffer> {
  const { identifier, scheme } = formOf(key)
  const spki = key.publicKey.export({ format: 'der', type: 'spki' })
  const info = write(TAG.SEQUENCE, write(TAG.INTEGER, Buffer.alloc(1)), subject, spki, attributes)
  const signature = await sign(info, scheme)
  return write(TAG.SEQUENCE, info, identifier, write(TAG.BITS, Buffer.alloc(1), signature))
}
