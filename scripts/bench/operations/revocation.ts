import { writeCrlEntry } from '../../../src/x509/crlentry.ts'
import { type Certified, type MinimalAuthority, openAuthority } from '../authority/authority.ts'
import { fillRevocations, issueMany, issuerOf } from '../authority/issued.ts'
import { answerOcsp, ocspRequest, signGood } from '../authority/ocsp.ts'
import type { StrongroomNode } from '../node.ts'
import { get, type Operation, type Operations, once, type Question } from '../operation.ts'
import type { RawToken } from '../token.ts'
import { prepared } from './certificates.ts'

/** More than the caches hold, so that none of them is there when its turn comes. */
const stored = 12_000
const listed = 10_000
/** A signed answer has 280 bytes and a head, a refusal 5. */
const leastBytes = 400
/** Bytes of a list besides its entries, about. */
const frameBytes = 350

const authority: (token: RawToken) => MinimalAuthority = once(openAuthority)

const certified: (token: RawToken) => readonly Certified[] = once((token) => {
  const { spki } = token.leafPair('ec-256')
  return Array.from({ length: stored }, (_, index) => authority(token).certify(`host${index}.example.com`, spki))
})

/** Asks Strongroom whether certificates of so many new ones are good. */
async function askOf(node: StrongroomNode, count: number): Promise<Question> {
  await prepared(node)
  const issuer = await issuerOf(node)
  const serials = await issueMany(node, count)
  const bodies = serials.map((serial) => ocspRequest(issuer, Buffer.from(serial.replaceAll(':', ''), 'hex')))
  const headers = { 'Content-Type': 'application/ocsp-request' }
  return { method: 'POST', path: '/v1/pki/ocsp', headers, body: undefined, bodies, leastBytes }
}

const answer = once((token) => signGood(authority(token), Buffer.alloc(75)))

const signedBefore: Operation = {
  serve: answer,
  bodies: (token) => [ocspRequest(authority(token), Buffer.alloc(20, 0x41))],
  ask: (node: StrongroomNode) => askOf(node, 1),
}

const signedNow: Operation = {
  raw: (token) => token.pair('ecdsa-p256').sign(Buffer.alloc(300)),
  stored: true,
  prepare: (token, store) => Promise.all(certified(token).map((one) => store.insert(one))),
  serve: (token, { bytes }, store) => answerOcsp(authority(token), bytes as Buffer, store),
  bodies: (token) => certified(token).map(({ serial }) => ocspRequest(authority(token), serial)),
  ask: (node: StrongroomNode) => askOf(node, stored),
}

const entry = writeCrlEntry({ serial: Buffer.alloc(20, 0x41), revokedAt: 0 })
const list = Buffer.alloc(listed * entry.length + frameBytes)

const listRead: Operation = {
  serve: () => list,
  async ask(node: StrongroomNode) {
    await prepared(node)
    await fillRevocations(node, listed)
    return { ...get('pki/crl'), headers: {} }
  },
}

/** Operations that tell relying parties of revocations. */
export const revocation: Operations = {
  [`CRL of ${listed.toLocaleString('en')} entries`]: listRead,
  'OCSP, signed before': signedBefore,
  'OCSP, first answer': signedNow,
}
