import { sign } from 'node:crypto'
import { type CrlFrame, finishCrl, writeCrlFrame } from '../../src/x509/crl.ts'
import { type CrlEntry, writeCrlEntry } from '../../src/x509/crlentry.ts'
import type { Extension } from '../../src/x509/extension.ts'
import { identifierOf, type Pair } from './authority.ts'

export interface WantedCrl {
  /** DER of the name. */
  readonly issuer: Buffer
  readonly key: Pair
  readonly entries?: readonly CrlEntry[]
  readonly thisUpdate?: number
  readonly nextUpdate?: number
  readonly extensions?: readonly Extension[]
  /** Of the signature. */
  readonly hash?: 'sha1' | 'sha256'
}

const day = 24 * 3600 * 1000

/** A list over ECDSA: the code under test builds, node:crypto signs. */
export function makeCrl(wanted: WantedCrl): Buffer {
  const { issuer, key, entries = [], extensions = [], hash = 'sha256' } = wanted
  const { thisUpdate = Date.now(), nextUpdate = thisUpdate + 3 * day } = wanted
  const bytes = Buffer.concat(entries.map(writeCrlEntry))
  const algorithm = identifierOf(`ECDSAWith${hash.toUpperCase()}`)
  const frame: CrlFrame = { issuer, algorithm, thisUpdate, nextUpdate, extensions, entriesBytes: bytes.length }
  const written = writeCrlFrame(frame)
  const signature = sign(hash, Buffer.concat([written.head, bytes, written.tbsTail]), key.privateKey)
  const { head, tail } = finishCrl(frame, written, signature)
  return Buffer.concat([head, bytes, tail])
}
