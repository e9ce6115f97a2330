import type { Role } from './role.ts'

/** One attribute of a name (X.520); `type` is its OID. */
export interface Attribute {
  readonly type: string
  readonly value: string
}

/** What a subject has besides what the role says. */
interface SubjectNames {
  readonly commonName: string
  readonly serialNumbers: readonly string[]
  readonly userIds: readonly string[]
}

type Place = Pick<Role, 'country' | 'organization' | 'ou' | 'locality' | 'province' | 'streetAddress' | 'postalCode'>

export const subjectTypes = {
  country: '2.5.4.6',
  organization: '2.5.4.10',
  ou: '2.5.4.11',
  locality: '2.5.4.7',
  province: '2.5.4.8',
  streetAddress: '2.5.4.9',
  postalCode: '2.5.4.17',
  commonName: '2.5.4.3',
  serialNumber: '2.5.4.5',
  userId: '0.9.2342.19200300.100.1.1',
} as const

/**
 * The subject of a certificate: one RDN for each attribute that has values, several values of one in the same RDN, each
 * once.
 */
export function subjectOf(role: Place, names: SubjectNames): readonly (readonly Attribute[])[] {
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
