import { type Cursor, within } from '../../crypto/cursor.ts'
import { asn1, context, contextAround, write } from '../../crypto/der.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { Malformed, reading } from '../malformed.ts'
import { readGeneralNames, writeGeneralName } from './generalname.ts'

/** CRL distribution points (RFC 5280 section 4.2.1.13): one for each URI. Not critical. @param uris at least one */
export const writeCrlDistributionPoints = (uris: readonly string[]): Extension => ({
  oid: extensionOids.crlDistributionPoints,
  critical: false,
  value: write(
    asn1.sequence,
    ...uris.map((value) => {
      const fullName = write(contextAround(0), writeGeneralName({ kind: 'uri', value }))
      return write(asn1.sequence, write(contextAround(0), fullName))
    }),
  ),
})

/**
 * The URIs of every point, whatever its reasons, of this extension or of freshestCRL (RFC 5280 section 4.2.1.15), which
 * has the same form.
 * @param value of the extension @throws Malformed
 */
export const readCrlDistributionPoints = (value: Buffer): readonly string[] =>
  reading('cRLDistributionPoints', () =>
    within(value, asn1.sequence, (points) => {
      const uris: string[] = []
      do uris.push(...readPoint(points.enter(asn1.sequence)))
      while (points.more)
      return uris
    }),
  )

function readPoint(point: Cursor): readonly string[] {
  const uris = point.tag === contextAround(0) ? readPointName(point.enter(contextAround(0))) : []
  if (point.tag === context(1)) point.skip()
  if (point.tag === contextAround(2)) readGeneralNames(point.enter(contextAround(2)))
  point.end()
  return uris
}

/** A name relative to the issuer's ([1]) is not a URI. */
function readPointName(name: Cursor): readonly string[] {
  if (name.tag === contextAround(1)) {
    name.skip()
    name.end()
    return []
  }
  const names = readGeneralNames(name.enter(contextAround(0)))
  if (name.more) throw new Malformed('a point has two names')
  return names.flatMap((general) => (general.kind === 'uri' ? [general.value] : []))
}
