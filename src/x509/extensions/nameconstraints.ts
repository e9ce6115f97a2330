import { type Cursor, within } from '../../crypto/cursor.ts'
import { asn1, contextAround, write } from '../../crypto/der.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { Malformed, reading } from '../malformed.ts'
import { type GeneralName, readGeneralName, writeGeneralName } from './generalname.ts'

/**
 * Name constraints (RFC 5280 section 4.2.1.10): the meaning of a base depends on its kind; an IP range is 8 or 32 bytes
 * (address and mask).
 */
export interface NameConstraints {
  readonly permitted: readonly GeneralName[]
  readonly excluded: readonly GeneralName[]
}

const permittedTag = contextAround(0)
const excludedTag = contextAround(1)

/** Critical. At least one base in all. */
export const writeNameConstraints = ({ permitted, excluded }: NameConstraints): Extension => ({
  oid: extensionOids.nameConstraints,
  critical: true,
  value: write(asn1.sequence, ...writeSubtrees(permittedTag, permitted), ...writeSubtrees(excludedTag, excluded)),
})

const writeSubtrees = (tag: number, bases: readonly GeneralName[]): readonly Buffer[] =>
  bases.length === 0 ? [] : [write(tag, ...bases.map((base) => write(asn1.sequence, writeGeneralName(base))))]

/** @param value of the extension @throws Malformed also for minimum and maximum, which RFC 5280 forbids */
export const readNameConstraints = (value: Buffer): NameConstraints =>
  reading('nameConstraints', () =>
    within(value, asn1.sequence, (parts) => {
      const permitted = parts.tag === permittedTag ? readSubtrees(parts.enter(permittedTag)) : []
      const excluded = parts.tag === excludedTag ? readSubtrees(parts.enter(excludedTag)) : []
      if (permitted.length + excluded.length === 0) throw new Malformed('it is empty')
      return { permitted, excluded }
    }),
  )

function readSubtrees(list: Cursor): readonly GeneralName[] {
  const bases: GeneralName[] = []
  do {
    const subtree = list.enter(asn1.sequence)
    bases.push(readGeneralName(subtree, [8, 32]))
    if (subtree.more) throw new Malformed('a subtree has a minimum or maximum')
  } while (list.more)
  return bases
}
