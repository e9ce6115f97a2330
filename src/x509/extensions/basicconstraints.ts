import { within } from '../../crypto/cursor.ts'
import { asn1, write, writeNumber } from '../../crypto/der.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { Malformed, reading } from '../malformed.ts'

/** Basic constraints (RFC 5280 section 4.2.1.9). */
export interface BasicConstraints {
  readonly ca: boolean
  /** The number of CA certificates below that are not self-issued; undefined is no limit. */
  readonly pathLength?: number | undefined
}

const isCa = write(asn1.boolean, Buffer.from([0xff]))

/** Critical. Without `ca` there is no path length: `{ ca: false }` is the empty SEQUENCE. */
export function writeBasicConstraints({ ca, pathLength }: BasicConstraints): Extension {
  const parts = ca ? [isCa] : []
  if (ca && pathLength !== undefined) parts.push(writeCount(pathLength))
  return { oid: extensionOids.basicConstraints, critical: true, value: write(asn1.sequence, ...parts) }
}

function writeCount(count: number): Buffer {
  const octets = Buffer.alloc(4)
  octets.writeUInt32BE(count)
  return writeNumber(octets.subarray(octets.findIndex((octet, index) => octet !== 0 || index === 3)))
}

/** @param value of the extension @throws Malformed */
export const readBasicConstraints = (value: Buffer): BasicConstraints =>
  reading('basicConstraints', () =>
    within(value, asn1.sequence, (constraints) => {
      const ca = constraints.tag === asn1.boolean && constraints.boolean()
      if (!constraints.more) return { ca }
      if (!ca) throw new Malformed('only a CA can have a path length')
      return { ca, pathLength: constraints.count() }
    }),
  )
