import { asn1, contextAround, write, writeHead } from '../crypto/der.ts'
import { type Extension, writeExtension } from './extension.ts'
import { writeTime } from './time.ts'

/**
 * Revocation lists (RFC 5280 section 5.1) around entries that are kept elsewhere: the bytes to sign are `head`, the
 * entries, `tbsTail`; the list is `head`, the entries, `tail`. Entries are neither copied nor held: a million of them
 * take 39 MB.
 */
export interface CrlFrame {
  /** Name, DER. */
  readonly issuer: Buffer
  /** AlgorithmIdentifier of the signature, DER. */
  readonly algorithm: Buffer
  /** Milliseconds since 1970; rounded down to a second. */
  readonly thisUpdate: number
  readonly nextUpdate: number
  readonly extensions: readonly Extension[]
  /** The number of bytes of all entries. */
  readonly entriesBytes: number
}

export interface WrittenFrame {
  readonly head: Buffer
  readonly tbsTail: Buffer
}

const version2 = write(asn1.integer, Buffer.from([1]))
const extensionsTag = contextAround(0)
const noUnusedBits = Buffer.alloc(1)

/**
 * TBSCertList of version 2, before and after its entries. Without entries the revokedCertificates field is absent
 * (section 5.1.2.6).
 */
export function writeCrlFrame(frame: CrlFrame): WrittenFrame {
  const { issuer, algorithm, thisUpdate, nextUpdate, extensions, entriesBytes } = frame
  const fields = [version2, algorithm, issuer, writeTime(thisUpdate), writeTime(nextUpdate)]
  if (entriesBytes > 0) fields.push(writeHead(asn1.sequence, entriesBytes))
  const before = Buffer.concat(fields)
  const tbsTail = writeExtensions(extensions)
  return {
    head: Buffer.concat([writeHead(asn1.sequence, before.length + entriesBytes + tbsTail.length), before]),
    tbsTail,
  }
}

const writeExtensions = (extensions: readonly Extension[]): Buffer =>
  extensions.length === 0
    ? Buffer.alloc(0)
    : write(extensionsTag, write(asn1.sequence, ...extensions.map(writeExtension)))

/** The bytes of the whole list before its entries and after them. */
export interface FinishedCrl {
  readonly head: Buffer
  readonly tail: Buffer
  /** The size of the whole list. */
  readonly bytes: number
}

/** @param written the result for this frame @param signature over `written.head`, the entries and `written.tbsTail` */
export function finishCrl(frame: CrlFrame, written: WrittenFrame, signature: Uint8Array): FinishedCrl {
  const tail = Buffer.concat([written.tbsTail, frame.algorithm, write(asn1.bitString, noUnusedBits, signature)])
  const contentBytes = written.head.length + frame.entriesBytes + tail.length
  const outer = writeHead(asn1.sequence, contentBytes)
  return { head: Buffer.concat([outer, written.head]), tail, bytes: outer.length + contentBytes }
}
