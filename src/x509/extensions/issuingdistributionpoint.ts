import { type Cursor, within } from '../../crypto/cursor.ts'
import { asn1, context, contextAround, write } from '../../crypto/der.ts'
import { crlExtensionOids, type Extension } from '../extension.ts'
import { reading } from '../malformed.ts'
import { readGeneralNames, writeGeneralName } from './generalname.ts'

/**
 * Issuing distribution point (RFC 5280 section 5.2.5) of a list that covers only the certificates whose own
 * distribution point has one of these URIs. Critical.
 * @param uris at least one
 */
export const issuingDistributionPoint = (uris: readonly string[]): Extension => ({
  oid: crlExtensionOids.issuingDistributionPoint,
  critical: true,
  value: write(
    asn1.sequence,
    write(contextAround(0), write(contextAround(0), ...uris.map((value) => writeGeneralName({ kind: 'uri', value })))),
  ),
})

export interface IssuingDistributionPoint {
  readonly uris: readonly string[]
  /** Whether entries may belong to certificates of other issuers. */
  readonly indirect: boolean
}

const distributionPoint = contextAround(0)
const fullName = contextAround(0)
const onlySomeReasons = context(3)
const indirectCrl = context(4)
/** onlyContainsUserCerts, onlyContainsCACerts and onlyContainsAttributeCerts. */
const scopes: ReadonlySet<number | undefined> = new Set([context(1), context(2), context(5)])

/** @param value of the extension @throws Malformed */
export const readIssuingDistributionPoint = (value: Buffer): IssuingDistributionPoint =>
  reading('issuingDistributionPoint', () =>
    within(value, asn1.sequence, (point) => {
      const uris = point.tag === distributionPoint ? readUris(point.enter(distributionPoint)) : []
      while (scopes.has(point.tag)) point.skip()
      if (point.tag === onlySomeReasons) point.skip()
      const indirect = point.tag === indirectCrl && point.contents()[0] !== 0
      while (scopes.has(point.tag)) point.skip()
      return { uris, indirect }
    }),
  )

/** A name relative to the issuer's has no URI. */
function readUris(name: Cursor): readonly string[] {
  if (name.tag !== fullName) {
    name.skip(contextAround(1))
    name.end()
    return []
  }
  const names = readGeneralNames(name.enter(fullName))
  name.end()
  return names.flatMap((general) => (general.kind === 'uri' ? [general.value] : []))
}
