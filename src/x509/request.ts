import { asn1, type Element, expect, NotDer, readAll, readOne, write } from '../crypto/der.ts'

/** Certification requests (PKCS#10, RFC 2986). */

const attributesTag = 0xa0

/** What a request of somebody else says besides its key: subject and attributes, as they are. */
export interface Template {
  readonly subject: Buffer
  readonly attributes: Buffer
}

export const emptyTemplate: Template = { subject: write(asn1.sequence), attributes: write(attributesTag) }

/** Its signature is nobody's business: another is made. @throws NotDer */
export function readTemplate(der: Buffer): Template {
  const [info, algorithm, signature] = readAll(readOne(der, asn1.sequence))
  expect(algorithm, asn1.sequence)
  expect(signature, asn1.bitString)
  const [version, subject, key, attributes, ...more] = readAll(expect(info, asn1.sequence))
  if (!expect(version, asn1.integer).equals(Buffer.alloc(1)) || more.length > 0) throw new NotDer('no such version')
  expect(key, asn1.sequence)
  return {
    subject: write(asn1.sequence, checked(expect(subject, asn1.sequence))),
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
  const info = write(asn1.sequence, write(asn1.integer, Buffer.alloc(1)), subject, spki, attributes)
  return write(asn1.sequence, info, algorithm, write(asn1.bitString, Buffer.alloc(1), await sign(info)))
}
