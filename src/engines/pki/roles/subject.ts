import { type AttributeValue, attributeTypes } from '../../../x509/name.ts'
import type { Role } from './role.ts'

/** What a subject has besides what the role says. */
interface SubjectNames {
  readonly commonName: string
  readonly serialNumbers: readonly string[]
  readonly userIds: readonly string[]
}

type Place = Pick<Role, 'country' | 'organization' | 'ou' | 'locality' | 'province' | 'streetAddress' | 'postalCode'>

/** The attributes of a subject in the order of a certificate. */
export const subjectTypes = {
  country: attributeTypes.country,
  organization: attributeTypes.organization,
  ou: attributeTypes.organizationalUnit,
  locality: attributeTypes.locality,
  province: attributeTypes.province,
  streetAddress: attributeTypes.streetAddress,
  postalCode: attributeTypes.postalCode,
  commonName: attributeTypes.commonName,
  serialNumber: attributeTypes.serialNumber,
  userId: attributeTypes.userId,
} as const

/**
 * The subject of a certificate: one RDN for each attribute that has values, several values of one in the same RDN, each
 * once.
 */
export function subjectOf(role: Place, names: SubjectNames): readonly (readonly AttributeValue[])[] {
  const values: Readonly<Record<keyof typeof subjectTypes, readonly string[]>> = {
    country: role.country,
    organization: role.organization,
    ou: role.ou,
    locality: role.locality,
    province: role.province,
    streetAddress: role.streetAddress,
    postalCode: role.postalCode,
    commonName: names.commonName === '' ? [] : [names.commonName],
    serialNumber: names.serialNumbers,
    userId: names.userIds,
  }
  return Object.entries(subjectTypes).flatMap(([name, type]) => {
    const attribute = [...new Set(values[name as keyof typeof subjectTypes])].map((value) => ({ type, value }))
    return attribute.length === 0 ? [] : [attribute]
  })
}
