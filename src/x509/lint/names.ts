import { Cursor } from '../../crypto/cursor.ts'
import { asn1 } from '../../crypto/der.ts'
import { attributeTypes, type NameAttribute, readName } from '../name.ts'
import { error, type Finding, warning } from './finding.ts'

/** Names (RFC 5280 sections 4.1.2.4 and 4.1.2.6; upper bounds and string types of appendix A.1). */

interface Rule {
  readonly name: string
  readonly most: number
  readonly least?: number
  /** The string type, where the attribute is not a DirectoryString. */
  readonly tag?: number
}

const rules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  [attributeTypes.commonName, { name: 'commonName', most: 64 }],
  [attributeTypes.surname, { name: 'surname', most: 32_768 }],
  [attributeTypes.givenName, { name: 'givenName', most: 32_768 }],
  [attributeTypes.initials, { name: 'initials', most: 32_768 }],
  [attributeTypes.generationQualifier, { name: 'generationQualifier', most: 32_768 }],
  [attributeTypes.serialNumber, { name: 'serialNumber', most: 64, tag: asn1.printableString }],
  [attributeTypes.country, { name: 'countryName', least: 2, most: 2, tag: asn1.printableString }],
  [attributeTypes.locality, { name: 'localityName', most: 128 }],
  [attributeTypes.province, { name: 'stateOrProvinceName', most: 128 }],
  [attributeTypes.organization, { name: 'organizationName', most: 64 }],
  [attributeTypes.organizationalUnit, { name: 'organizationalUnitName', most: 64 }],
  [attributeTypes.title, { name: 'title', most: 64 }],
  [attributeTypes.pseudonym, { name: 'pseudonym', most: 128 }],
  [attributeTypes.dnQualifier, { name: 'dnQualifier', most: 32_768, tag: asn1.printableString }],
  [attributeTypes.domainComponent, { name: 'domainComponent', most: 32_768, tag: asn1.ia5String }],
  [attributeTypes.emailAddress, { name: 'emailAddress', most: 255, tag: asn1.ia5String }],
])

/** @param der of the name @param whose subject or issuer @throws Malformed */
export function lintName(der: Buffer, whose: string): readonly Finding[] {
  const findings: Finding[] = []
  let ordered = true
  for (const rdn of readName(der)) {
    if (rdn.length > 1) ordered = false
    for (const attribute of rdn) lintAttribute(attribute, whose, findings)
  }
  if (!ordered && !isOrdered(der))
    findings.push(error('name_set_order', `${whose}: an RDN's values are not in DER order`))
  return findings
}

function lintAttribute({ type, value, tag }: NameAttribute, whose: string, findings: Finding[]): void {
  const rule = rules.get(type)
  const name = rule?.name ?? type
  const { least = 1, most = Number.POSITIVE_INFINITY } = rule ?? {}
  // Lengths count characters; JavaScript counts those beyond the BMP twice.
  const length = value.length <= most ? value.length : [...value].length
  if (length < least) findings.push(error('name_length', `${whose}: ${name} is shorter than ${least} characters`))
  if (length > most) findings.push(error('name_length', `${whose}: ${name} is longer than ${most} characters`))
  if (rule?.tag !== undefined) {
    if (tag !== rule.tag) findings.push(error('name_encoding', `${whose}: ${name} has the wrong string type`))
  } else if (tag !== asn1.utf8String && tag !== asn1.printableString) {
    findings.push(warning('name_encoding', `${whose}: ${name} is neither PrintableString nor UTF8String`))
  }
}

/** Whether the values of every RDN ascend (X.690 section 11.6). */
function isOrdered(der: Buffer): boolean {
  const rdns = new Cursor(der).enter(asn1.sequence)
  while (rdns.more) {
    const rdn = rdns.enter(asn1.set)
    for (let last = rdn.element(); rdn.more; ) {
      const next = rdn.element()
      if (Buffer.compare(last, next) >= 0) return false
      last = next
    }
  }
  return true
}
