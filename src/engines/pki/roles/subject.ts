import { type AttributeValue, attributeTypes } from '../../../x509/name.ts'
import type { Role } from './role.ts'

/** The attributes of a subject besides those of the role. */
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

const placeTypes = ['country', 'organization', 'ou', 'locality', 'province', 'streetAddress', 'postalCode'] as const

/** The subject of a certificate: one RDN for each attribute that has values, with all its values, each once. */
export function subjectOf(role: Place, names: SubjectNames): readonly (readonly AttributeValue[])[] {
  const subject: (readonly AttributeValue[])[] = []
  const add = (name: keyof typeof subjectTypes, values: readonly string[]): void => {
    if (values.length === 0) return
    const type = subjectTypes[name]
    subject.push([...new Set(values)].map((value) => ({ type, value })))
  }
  for (const name of placeTypes) add(name, role[name])
  if (names.commonName !== '') subject.push([{ type: subjectTypes.commonName, value: names.commonName }])
  add('serialNumber', names.serialNumbers)
  add('userId', names.userIds)
  return subject
}
