import type { KeyObject } from 'node:crypto'
import { type Cursor, within } from '../crypto/cursor.ts'
import { asn1, contextAround } from '../crypto/der.ts'
import { entrySerials } from './crlentry.ts'
import { type Extension, readExtensionList } from './extension.ts'
import { Malformed, reading } from './malformed.ts'
import { readName } from './name.ts'
import { verifySignature } from './signature.ts'
import { readTime } from './time.ts'

/** A parsed revocation list (RFC 5280 section 5.1). Its buffers are views of `der`. */
export interface Crl {
  readonly der: Buffer
  /** The bytes that are signed. */
  readonly tbs: Buffer
  /** Name, DER. */
  readonly issuer: Buffer
  /** AlgorithmIdentifier of the signature, DER. */
  readonly algorithm: Buffer
  /** Milliseconds since 1970. */
  readonly thisUpdate: number
  /** Absent from lists that do not follow RFC 5280. */
  readonly nextUpdate: number | undefined
  /** All entries, adjacent, for `entrySerials`; each has been read. */
  readonly entries: Buffer
  readonly count: number
  readonly extensions: readonly Extension[]
  readonly signature: Buffer
}

const extensionsTag = contextAround(0)

/** Reads v1 and v2 strictly. Extensions are not interpreted. @throws Malformed */
export const readCrl = (der: Buffer): Crl =>
  reading('CRL', () =>
    within(der, asn1.sequence, (outside) => {
      const tbs = outside.element(asn1.sequence)
      const algorithm = outside.element(asn1.sequence)
      const signature = outside.bytes()
      const parts = within(tbs, asn1.sequence, readTbsCertList)
      if (!parts.algorithm.equals(algorithm)) throw new Malformed('its two signature algorithms differ')
      readName(parts.issuer)
      return { ...parts, der, tbs, signature }
    }),
  )

function readTbsCertList(tbs: Cursor) {
  const version = tbs.tag === asn1.integer ? readVersion(tbs) : 1
  const algorithm = tbs.element(asn1.sequence)
  const issuer = tbs.element(asn1.sequence)
  const thisUpdate = readTime(tbs)
  const nextUpdate = tbs.tag === asn1.utcTime || tbs.tag === asn1.generalizedTime ? readTime(tbs) : undefined
  const entries = tbs.tag === asn1.sequence ? tbs.contents(asn1.sequence) : Buffer.alloc(0)
  const count = countEntries(entries, version)
  const extensions = version === 2 && tbs.more ? readExtensionList(tbs.enter(extensionsTag)) : []
  return { algorithm, issuer, thisUpdate, nextUpdate, entries, count, extensions }
}

function readVersion(tbs: Cursor): 2 {
  if (tbs.count() !== 1) throw new Malformed('only CRLs of v1 and v2 are supported')
  return 2
}

/** @throws Malformed */
function countEntries(entries: Buffer, version: 1 | 2): number {
  let count = 0
  for (const entry of entrySerials(entries)) {
    if (version === 1 && entry.hasExtensions) throw new Malformed('an entry of a v1 CRL has extensions')
    count++
  }
  return count
}

/** Whether the key signed the list. False also for an algorithm that is not supported or does not fit the key. */
export const verifyCrl = ({ tbs: data, algorithm, signature }: Crl, publicKey: KeyObject): boolean =>
  verifySignature({ publicKey, algorithm, data, signature })
