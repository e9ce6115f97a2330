import { type Element, expect, NotDer, readAll, readOne, TAG, write } from '../crypto/der.ts'

/** Certification requests (PKCS#10, RFC 2986). */

const attributesTag = 0xa0

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

/**
 * @param spki SubjectPublicKeyInfo, DER
 * @param algorithm AlgorithmIdentifier of the signature, DER
 * @param sign makes the signature over exactly the bytes it is given
 * @returns DER
 */
export async function makeRequest(
  { spki, algorithm }: { readonly spki: Buffer; readonly algorithm: Buffer },
  { subject, attributes }: Template,
  sign: (info: Buffer) => Promise<Buffer> | Buffer,
): Promise<Buffer> {
  const info = write(TAG.SEQUENCE, write(TAG.INTEGER, Buffer.alloc(1)), subject, spki, attributes)
  return write(TAG.SEQUENCE, info, algorithm, write(TAG.BITS, Buffer.alloc(1), await sign(info)))
}
