import type { Cursor } from '../crypto/cursor.ts'
import { asn1, write } from '../crypto/der.ts'
import { writeOid } from '../crypto/oid.ts'
import { Malformed } from './malformed.ts'

/** Extensions (RFC 5280 section 4.1.2.9): of certificates, requests and lists alike. */
export interface Extension {
  /** Dotted. */
  readonly oid: string
  readonly critical: boolean
  /** The contents of extnValue: the DER of the extension's own type. */
  readonly value: Buffer
  /** The DER of the whole Extension, if prepareExtension has made it. */
  readonly der?: Buffer
}

export const extensionOids = {
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  issuerAltName: '2.5.29.18',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  crlDistributionPoints: '2.5.29.31',
  certificatePolicies: '2.5.29.32',
  policyMappings: '2.5.29.33',
  authorityKeyIdentifier: '2.5.29.35',
  policyConstraints: '2.5.29.36',
  extendedKeyUsage: '2.5.29.37',
  freshestCrl: '2.5.29.46',
  inhibitAnyPolicy: '2.5.29.54',
  noRevAvail: '2.5.29.56',
  authorityInformationAccess: '1.3.6.1.5.5.7.1.1',
  subjectInformationAccess: '1.3.6.1.5.5.7.1.11',
} as const

/** Extensions that only revocation lists and their entries have (RFC 5280 sections 5.2 and 5.3). */
export const crlExtensionOids = {
  crlNumber: '2.5.29.20',
  reasonCode: '2.5.29.21',
  deltaCrlIndicator: '2.5.29.27',
  issuingDistributionPoint: '2.5.29.28',
  certificateIssuer: '2.5.29.29',
} as const

const mostExtensions = 100
const critical = write(asn1.boolean, Buffer.from([0xff]))
const uncritical = Buffer.alloc(0)

/** The DER of one Extension. */
export const writeExtension = (extension: Extension): Buffer =>
  extension.der ??
  write(
    asn1.sequence,
    writeOid(extension.oid),
    extension.critical ? critical : uncritical,
    write(asn1.octetString, extension.value),
  )

/** The same extension with its DER kept: for extensions that a role or issuer gives to every certificate. */
export const prepareExtension = (extension: Extension): Extension => ({ ...extension, der: writeExtension(extension) })

/** The extensions of a certificate or request. @throws NotDer; Malformed also when one comes twice */
export function readExtensions(list: Cursor): readonly Extension[] {
  const extensions: Extension[] = []
  while (list.more) {
    const extension = list.enter(asn1.sequence)
    const oid = extension.oid()
    const isCritical = extension.tag === asn1.boolean && extension.boolean()
    const value = extension.contents(asn1.octetString)
    extension.end()
    if (extensions.some((other) => other.oid === oid)) throw new Malformed(`extension ${oid} comes twice`)
    if (extensions.length === mostExtensions) throw new Malformed(`more than ${mostExtensions} extensions`)
    extensions.push({ oid, critical: isCritical, value })
  }
  return extensions
}

/** The explicitly tagged list of a certificate, CRL or response: SEQUENCE SIZE (1..MAX), with nothing behind it. */
export function readExtensionList(around: Cursor): readonly Extension[] {
  const list = around.enter(asn1.sequence)
  around.end()
  if (!list.more) throw new Malformed('the list of extensions is empty')
  return readExtensions(list)
}
