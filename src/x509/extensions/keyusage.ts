import { Cursor } from '../../crypto/cursor.ts'
import { asn1, write } from '../../crypto/der.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { Malformed, reading } from '../malformed.ts'

/** Key usage (RFC 5280 section 4.2.1.3), by the names of the API, in the order of their bits. */
export const keyUsages = [
  'DigitalSignature',
  'ContentCommitment',
  'KeyEncipherment',
  'DataEncipherment',
  'KeyAgreement',
  'CertSign',
  'CRLSign',
  'EncipherOnly',
  'DecipherOnly',
] as const

export type KeyUsage = (typeof keyUsages)[number]

/** Critical. @param usages at least one, in any order */
export function writeKeyUsage(usages: readonly KeyUsage[]): Extension {
  let bits = 0
  for (const usage of usages) bits |= 0x8000 >> keyUsages.indexOf(usage)
  // DER drops the bits after the last one that is set (X.690 section 11.2).
  const length = (bits & 0xff) === 0 ? 1 : 2
  const used = length === 1 ? bits >> 8 : bits
  const unused = used === 0 ? 0 : 31 - Math.clz32(used & -used)
  const octets = length === 1 ? [used] : [bits >> 8, bits & 0xff]
  const value = write(asn1.bitString, Buffer.from(bits === 0 ? [0] : [unused, ...octets]))
  return { oid: extensionOids.keyUsage, critical: true, value }
}

/** The usages that are set, in the order of their bits. @param value of the extension @throws Malformed */
export const readKeyUsage = (value: Buffer): readonly KeyUsage[] =>
  reading('keyUsage', () => {
    const cursor = new Cursor(value)
    const bits = cursor.contents(asn1.bitString)
    cursor.end()
    if (bits.length === 0 || bits.length > 3 || (bits[0] ?? 0) > 7)
      throw new Malformed('it is not a BIT STRING of key usages')
    return keyUsages.filter((_, bit) => ((bits[1 + (bit >> 3)] ?? 0) & (0x80 >> (bit & 7))) !== 0)
  })
