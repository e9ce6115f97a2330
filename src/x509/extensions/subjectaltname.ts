import { within } from '../../crypto/cursor.ts'
import { asn1, write } from '../../crypto/der.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { reading } from '../malformed.ts'
import { type GeneralName, readGeneralNames, writeGeneralName } from './generalname.ts'

/**
 * Subject alternative names (RFC 5280 section 4.2.1.6).
 * @param names at least one
 * @param critical when the subject is empty
 */
export const writeSubjectAltName = (names: readonly GeneralName[], critical = false): Extension => ({
  oid: extensionOids.subjectAltName,
  critical,
  value: write(asn1.sequence, ...names.map(writeGeneralName)),
})

/** @param value of the extension @throws Malformed */
export const readSubjectAltName = (value: Buffer): readonly GeneralName[] =>
  reading('subjectAltName', () => within(value, asn1.sequence, (names) => readGeneralNames(names)))
