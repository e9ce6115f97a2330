import { type Cursor, within } from '../../crypto/cursor.ts'
import { asn1, write } from '../../crypto/der.ts'
import { writeOid } from '../../crypto/oid.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { Malformed, reading } from '../malformed.ts'
import { readAscii, readText, writeUtf8 } from '../text.ts'

/** A policy and its qualifiers (RFC 5280 section 4.2.1.4). */
export interface CertificatePolicy {
  /** Dotted. */
  readonly oid: string
  /** URI of the certification practice statement, in ASCII. */
  readonly cps?: string | undefined
  /** explicitText of the user notice. */
  readonly notice?: string | undefined
}

const qualifiers = { cps: '1.3.6.1.5.5.7.2.1', notice: '1.3.6.1.5.5.7.2.2' } as const

/** Not critical. @param policies at least one */
export const writeCertificatePolicies = (policies: readonly CertificatePolicy[]): Extension => ({
  oid: extensionOids.certificatePolicies,
  critical: false,
  value: write(asn1.sequence, ...policies.map(writePolicy)),
})

function writePolicy({ oid, cps, notice }: CertificatePolicy): Buffer {
  const written: Buffer[] = []
  if (cps) written.push(writeQualifier(qualifiers.cps, write(asn1.ia5String, Buffer.from(cps, 'latin1'))))
  if (notice) written.push(writeQualifier(qualifiers.notice, write(asn1.sequence, writeUtf8(notice))))
  return write(asn1.sequence, writeOid(oid), ...(written.length > 0 ? [write(asn1.sequence, ...written)] : []))
}

const writeQualifier = (oid: string, value: Buffer): Buffer => write(asn1.sequence, writeOid(oid), value)

/** Other qualifiers are left out. @param value of the extension @throws Malformed */
export const readCertificatePolicies = (value: Buffer): readonly CertificatePolicy[] =>
  reading('certificatePolicies', () =>
    within(value, asn1.sequence, (list) => {
      const policies: CertificatePolicy[] = []
      do policies.push(readPolicy(list.enter(asn1.sequence)))
      while (list.more)
      if (new Set(policies.map(({ oid }) => oid)).size < policies.length) throw new Malformed('a policy comes twice')
      return policies
    }),
  )

function readPolicy(policy: Cursor): CertificatePolicy {
  const read: { oid: string; cps?: string; notice?: string } = { oid: policy.oid() }
  if (!policy.more) return read
  const list = policy.enter(asn1.sequence)
  policy.end()
  do {
    const qualifier = list.enter(asn1.sequence)
    const kind = qualifier.oid()
    if (kind === qualifiers.cps) read.cps = readAscii(qualifier.contents(asn1.ia5String))
    else if (kind === qualifiers.notice) readNotice(qualifier.enter(asn1.sequence), read)
    else qualifier.skip()
    qualifier.end()
  } while (list.more)
  return read
}

/** UserNotice: both its parts are optional, and the reference to a notice is not read. */
function readNotice(notice: Cursor, read: { notice?: string }): void {
  if (notice.tag === asn1.sequence) notice.skip()
  if (notice.more) read.notice = readText(notice.tag, notice.contents())
  notice.end()
}
