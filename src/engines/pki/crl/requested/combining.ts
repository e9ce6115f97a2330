import { nextTurn } from '../../../../after.ts'
import { readBlocks } from '../../../../crypto/pem.ts'
import { badRequest } from '../../../../errors.ts'
import type { Certificate } from '../../../../x509/certificate.ts'
import { entrySerials, type ListedEntry, writeCrlEntry } from '../../../../x509/crlentry.ts'
import { type Crl, readCrl, verifyCrl } from '../../../../x509/crlreader.ts'
import { crlExtensionOids, type Extension, extensionOids } from '../../../../x509/extension.ts'
import { readIssuingDistributionPoint } from '../../../../x509/extensions/issuingdistributionpoint.ts'
import { crlReasons } from '../../../../x509/extensions/reasoncode.ts'
import { Malformed } from '../../../../x509/malformed.ts'
import { withColons } from '../../../../x509/serial.ts'
import { signatureAlgorithmOf } from '../../../../x509/signature.ts'

const mostLists = 1000
/** Each names a serial number. */
const mostWarnings = 100
/** Entries per turn of the event loop. */
const entriesInTurn = 5000

/**
 * Merges the entries of several lists of one issuer, one per serial number. Where lists disagree, the earliest
 * revocation counts. An entry keeps its reason; anything else in the lists is left out.
 * @param texts PEM @throws ApiError 400 naming the list
 */
export async function combineLists(
  texts: readonly string[],
  issuer: Certificate,
  warn: (text: string) => void,
): Promise<readonly Buffer[]> {
  if (texts.length > mostLists) throw badRequest(`at most ${mostLists} CRLs can be combined, not ${texts.length}`)
  const combined = new Map<string, ListedEntry>()
  const disputed = new Set<string>()
  for (const [index, text] of texts.entries()) {
    const { entries, algorithm } = readSigned(text, index, issuer)
    const { name = '', weak = false } = signatureAlgorithmOf(algorithm) ?? {}
    if (weak) warn(`CRL index: ${index} is signed by ${name}: such signatures can be forged`)
    await inTurns(entrySerials(entries), (entry) => {
      requireRevocation(entry, index)
      const serial = entry.serial.toString('hex')
      const known = combined.get(serial)
      if (known !== undefined && known.revokedAt !== entry.revokedAt) disputed.add(serial)
      if (known === undefined || entry.revokedAt < known.revokedAt) combined.set(serial, entry)
    })
  }
  warnOf(disputed, warn)
  const entries: Buffer[] = []
  await inTurns(combined.values(), (entry) => entries.push(writeCrlEntry(asEntry(entry))))
  return entries
}

const asEntry = ({ serial, revokedAt, reason }: ListedEntry) => ({ serial, revokedAt, reason })

async function inTurns<T>(items: Iterable<T>, visit: (item: T) => void): Promise<void> {
  let count = 0
  for (const item of items) {
    visit(item)
    if (++count % entriesInTurn === 0) await nextTurn()
  }
  await nextTurn()
}

function warnOf(disputed: ReadonlySet<string>, warn: (text: string) => void): void {
  for (const serial of [...disputed].slice(0, mostWarnings)) {
    const shown = withColons(Buffer.from(serial, 'hex'))
    warn(`Duplicate serial ${shown} with different revocation times detected, using oldest revocation time`)
  }
  const more = disputed.size - mostWarnings
  if (more > 0) warn(`${more} more serials have different revocation times; the oldest of each is used`)
}

/** @throws ApiError 400 */
function readSigned(text: string, index: number, issuer: Certificate): Crl {
  const crl = decode(text, index)
  if (!crl.issuer.equals(issuer.subject) || !verifyCrl(crl, issuer.publicKey())) {
    throw badRequest(`CRL index: ${index} was not signed by requested issuer`)
  }
  requireDirect(crl, index)
  return crl
}

function decode(text: string, index: number): Crl {
  const [block, ...more] = readBlocks(text, 2)
  if (block?.der === undefined || block.label !== 'X509 CRL' || block.headers || more.length > 0) {
    throw badRequest(`failed decoding crl ${index}: invalid crl; should be one PEM block only`)
  }
  try {
    return readCrl(block.der)
  } catch (error) {
    throw error instanceof Malformed ? badRequest(`failed decoding crl ${index}: ${error.message}`) : error
  }
}

/** Critical extensions that do not change the meaning of entries: revoked certificates of this issuer. */
const understood: ReadonlySet<string> = new Set([
  extensionOids.authorityKeyIdentifier,
  crlExtensionOids.crlNumber,
  crlExtensionOids.deltaCrlIndicator,
  crlExtensionOids.issuingDistributionPoint,
])

/** RFC 5280 sections 5.2.5 and 5.2: no indirect lists, no unknown critical extensions. @throws ApiError 400 */
function requireDirect({ extensions }: Crl, index: number): void {
  refuseCritical(extensions, understood, `CRL index: ${index}`)
  const point = extensions.find(({ oid }) => oid === crlExtensionOids.issuingDistributionPoint)
  if (point !== undefined && isIndirect(point, index)) {
    throw badRequest(`CRL index: ${index} is an indirect CRL, which is not supported`)
  }
}

function isIndirect({ value }: Extension, index: number): boolean {
  try {
    return readIssuingDistributionPoint(value).indirect
  } catch (error) {
    throw error instanceof Malformed ? badRequest(`failed decoding crl ${index}: ${error.message}`) : error
  }
}

const entryUnderstood: ReadonlySet<string> = new Set([crlExtensionOids.reasonCode])

/** @throws ApiError 400 for an entry whose extensions change its meaning */
function requireRevocation(entry: ListedEntry, index: number): void {
  if (!entry.hasExtensions) return
  const where = (): string => `CRL index: ${index}, entry ${withColons(entry.serial)}`
  if (entry.reason === crlReasons.removeFromCRL) {
    throw badRequest(`${where()} has the reason removeFromCRL: only revocations can be combined`)
  }
  const { extensions } = entry
  if (extensions.some(({ oid }) => oid === crlExtensionOids.certificateIssuer)) {
    throw badRequest(`${where()} is of another issuer's certificate: indirect CRLs are not supported`)
  }
  refuseCritical(extensions, entryUnderstood, where())
}

function refuseCritical(extensions: readonly Extension[], known: ReadonlySet<string>, where: string): void {
  const unknown = extensions.find(({ oid, critical }) => critical && !known.has(oid))
  if (unknown !== undefined)
    throw badRequest(`${where} has the critical extension ${unknown.oid}, which is not known here`)
}
