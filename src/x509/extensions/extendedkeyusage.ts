import { within } from '../../crypto/cursor.ts'
import { asn1, write } from '../../crypto/der.ts'
import { writeOid } from '../../crypto/oid.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { Malformed, reading } from '../malformed.ts'

/** The purposes that have names in the API and their OIDs, in the order in which certificates list them. */
export const extendedKeyUsages = {
  Any: '2.5.29.37.0',
  ServerAuth: '1.3.6.1.5.5.7.3.1',
  ClientAuth: '1.3.6.1.5.5.7.3.2',
  CodeSigning: '1.3.6.1.5.5.7.3.3',
  EmailProtection: '1.3.6.1.5.5.7.3.4',
  IPSECEndSystem: '1.3.6.1.5.5.7.3.5',
  IPSECTunnel: '1.3.6.1.5.5.7.3.6',
  IPSECUser: '1.3.6.1.5.5.7.3.7',
  TimeStamping: '1.3.6.1.5.5.7.3.8',
  OCSPSigning: '1.3.6.1.5.5.7.3.9',
  MicrosoftServerGatedCrypto: '1.3.6.1.4.1.311.10.3.3',
  NetscapeServerGatedCrypto: '2.16.840.1.113730.4.1',
} as const

export type ExtendedKeyUsage = keyof typeof extendedKeyUsages

/** Extended key usage (RFC 5280 section 4.2.1.12), not critical. @param oids dotted, at least one */
export const writeExtendedKeyUsage = (oids: readonly string[]): Extension => ({
  oid: extensionOids.extendedKeyUsage,
  critical: false,
  value: write(asn1.sequence, ...oids.map(writeOid)),
})

/** The purposes' dotted OIDs. @param value of the extension @throws Malformed */
export const readExtendedKeyUsage = (value: Buffer): readonly string[] =>
  reading('extendedKeyUsage', () =>
    within(value, asn1.sequence, (purposes) => {
      const oids: string[] = []
      while (purposes.more) oids.push(purposes.oid())
      if (oids.length === 0) throw new Malformed('it is empty')
      return oids
    }),
  )
