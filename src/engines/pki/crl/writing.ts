import { createHash, hash } from 'node:crypto'
import { type SignatureAlgorithm, signatureAlgorithmOf } from '../../../crypto/signaturealgorithm.ts'
import { keyIdentifierOf } from '../../../x509/certificate.ts'
import { type CrlFrame, finishCrl, writeCrlFrame } from '../../../x509/crl.ts'
import type { Extension } from '../../../x509/extension.ts'
import { crlNumber, deltaCrlIndicator } from '../../../x509/extensions/crlnumber.ts'
import { issuingDistributionPoint } from '../../../x509/extensions/issuingdistributionpoint.ts'
import { writeAuthorityKeyIdentifier } from '../../../x509/extensions/keyidentifier.ts'
import type { Content } from './content.ts'
import type { Segments } from './segments.ts'
import type { CrlRow } from './tables.ts'
import type { BuildTarget } from './target.ts'

/** A list to be signed. */
export interface Draft {
  readonly number: number
  /** Of a delta: the number of its complete list. */
  readonly base: number | null
  readonly thisUpdate: number
  readonly content: Content
  /** Of a shard: its distribution points. */
  readonly urls?: readonly string[]
}

/** A list as it was signed, without its name. */
export type Written = Pick<
  CrlRow,
  'number' | 'base' | 'thisUpdate' | 'nextUpdate' | 'bytes' | 'head' | 'tail' | 'parts' | 'covered' | 'sha256'
>

/** Signs a list over the entries of segments, which are read one by one and not kept. */
export async function writeList(segments: Segments, target: BuildTarget, draft: Draft): Promise<Written> {
  const { number, base, thisUpdate, content } = draft
  const algorithm = signatureAlgorithmOf(target.algorithm)
  const nextUpdate = thisUpdate + target.expiryMilliseconds
  const frame: CrlFrame = {
    issuer: target.certificate.subject,
    algorithm: algorithm.identifier,
    thisUpdate,
    nextUpdate,
    extensions: extensionsOf(target, draft),
    entriesBytes: await measure(segments, content),
  }
  const written = writeCrlFrame(frame)
  const tbs = bytesOf(segments, content, frame.entriesBytes, written)
  const { signature, sha256 } = await sign(target, algorithm, tbs)
  const finished = finishCrl(frame, written, signature)
  const { parts, covered } = content
  return { number, base, thisUpdate, nextUpdate, parts, covered, sha256, ...finished }
}

/** RFC 5280 section 5.2: the issuer's key and the number; for a delta its base, for a shard its scope. */
function extensionsOf({ certificate }: BuildTarget, { number, base, urls }: Draft): Extension[] {
  return [
    writeAuthorityKeyIdentifier(certificate.subjectKeyId ?? keyIdentifierOf(certificate.spki)),
    crlNumber(number),
    ...(base === null ? [] : [deltaCrlIndicator(base)]),
    ...(urls === undefined ? [] : [issuingDistributionPoint(urls)]),
  ]
}

async function measure(segments: Segments, { bytes, unmeasured }: Content): Promise<number> {
  let sum = bytes
  for await (const entries of segments.entries(unmeasured)) sum += entries.length
  return sum
}

/** The tbsCertList in pieces. */
async function* bytesOf(
  segments: Segments,
  { parts }: Content,
  entriesBytes: number,
  { head, tbsTail }: { readonly head: Buffer; readonly tbsTail: Buffer },
): AsyncGenerator<Buffer, void> {
  let left = entriesBytes
  yield head
  for await (const entries of segments.entries(parts)) {
    left -= entries.length
    yield entries
  }
  if (left !== 0) throw new Error('the entries of a list are not as long as its manifest says')
  yield tbsTail
}

/** Hashes on the host and signs in the token; Ed25519 takes the message whole. */
async function sign(
  { signer, algorithm: name }: BuildTarget,
  { hash: signatureHash }: SignatureAlgorithm,
  tbs: AsyncIterable<Buffer>,
): Promise<{ signature: Buffer; sha256: Buffer }> {
  if (signatureHash === undefined) {
    const pieces: Buffer[] = []
    for await (const bytes of tbs) pieces.push(bytes)
    const message = Buffer.concat(pieces)
    const { signature } = await signer.sign(name, message)
    return { signature, sha256: hash('sha256', message, 'buffer') }
  }
  const sha256 = createHash('sha256')
  const own = signatureHash.node === 'sha256' ? undefined : createHash(signatureHash.node)
  for await (const bytes of tbs) {
    sha256.update(bytes)
    own?.update(bytes)
  }
  const sum = sha256.digest()
  const { signature } = await signer.signDigest(name, own?.digest() ?? sum)
  return { signature, sha256: sum }
}
