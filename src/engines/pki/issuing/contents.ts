import type { GeneralName } from '../../../x509/extensions/generalname.ts'
import { writeName } from '../../../x509/name.ts'
import type { AlternativeNames, Decision } from '../roles/decision.ts'
import type { Contents } from './extensions.ts'

/** Alternative names in the order in which certificates list them. */
const generalNames = ({ other, dns, email, ip, uri }: AlternativeNames): readonly GeneralName[] => [
  ...other.map(({ oid, value }) => ({ kind: 'other', oid, value }) as const),
  ...dns.map((value) => ({ kind: 'dns', value }) as const),
  ...email.map((value) => ({ kind: 'email', value }) as const),
  ...ip.map((value) => ({ kind: 'ip', value }) as const),
  ...uri.map((value) => ({ kind: 'uri', value }) as const),
]

const leaf = { ca: false } as const

/** The contents of a leaf, as its role decided them. */
export const contentsOf = (decision: Omit<Decision, 'validity' | 'warnings'>): Contents => ({
  subject: writeName(decision.subject),
  names: generalNames(decision.names),
  keyUsages: decision.keyUsages,
  extendedKeyUsages: decision.extendedKeyUsages,
  basicConstraints: decision.basicConstraints ? leaf : undefined,
  policies: decision.policies,
  neverRevoked: decision.noRevAvail,
  brought: decision.extensions,
})
