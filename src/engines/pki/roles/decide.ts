import { type Asked, checkOfValidity, checksOf, readAsked } from './checks.ts'
import type { Circumstances, Decision } from './decision.ts'
import { policiesOf } from './policies.ts'
import { type Check, refused } from './refusal.ts'
import type { NameRequest } from './request.ts'
import type { Role } from './role.ts'
import { subjectOf } from './subject.ts'
import { extendedKeyUsagesOfRole, keyUsagesOf } from './usages.ts'
import { ttlOf } from './validity.ts'

/** The result of a role for a request: the check of every value, and the warnings. */
export interface Explanation {
  readonly allowed: boolean
  readonly checks: readonly Check[]
  readonly warnings: readonly string[]
}

/**
 * The contents of a certificate for the request. Pure: the same role, request and circumstances give the same decision.
 * @throws ApiError 400 for the first value that the role refuses
 */
export function decide(role: Role, request: NameRequest, circumstances: Circumstances): Decision {
  const asked = readAsked(role, request, circumstances)
  for (const { refusal } of checksOf(role, asked, circumstances)) {
    if (refusal !== undefined) throw refused(refusal, role.name)
  }
  const { names, addresses, uris, validity } = asked
  if ('rule' in validity) throw refused(validity, role.name)
  return {
    subject: subjectOf(role, names),
    names: {
      other: names.other.filter((other) => typeof other === 'object'),
      dns: names.dns,
      email: names.email,
      ip: addresses.flatMap(({ bytes }) => bytes ?? []),
      uri: uris,
    },
    validity,
    ...sharedBy(role),
    extensions: request.csr?.extensions.filter(({ oid }) => role.allowedExtensions.includes(oid)) ?? [],
    warnings: warningsOf(role, asked, circumstances),
  }
}

type Shared = Pick<Decision, 'keyUsages' | 'extendedKeyUsages' | 'policies' | 'basicConstraints' | 'noRevAvail'>

const shared = new WeakMap<Role, Shared>()

/** The contents that all certificates of a role share, computed once. */
export function sharedBy(role: Role): Shared {
  const known = shared.get(role)
  if (known) return known
  const made = {
    keyUsages: keyUsagesOf(role.keyUsage),
    extendedKeyUsages: extendedKeyUsagesOfRole(role),
    policies: policiesOf(role.policyIdentifiers),
    basicConstraints: role.basicConstraintsValidForNonCa,
    noRevAvail: role.noRevAvail,
  }
  shared.set(role, made)
  return made
}

/** As `decide`, but tells for every value whether it is allowed. */
export function explain(role: Role, request: NameRequest, circumstances: Circumstances): Explanation {
  const asked = readAsked(role, request, circumstances)
  const checks = [...checksOf(role, asked, circumstances), checkOfValidity(asked)]
  const allowed = checks.every(({ refusal }) => refusal === undefined)
  return { allowed, checks, warnings: warningsOf(role, asked, circumstances) }
}

const basicConstraints = '2.5.29.19'

function warningsOf(role: Role, { request, names }: Asked, circumstances: Circumstances): readonly string[] {
  const { warning } = request.notAfter || role.notAfter ? {} : ttlOf(role, request, circumstances)
  const brought = request.csr?.extensions.some(({ oid }) => oid === basicConstraints)
  return [
    ...(warning === undefined ? [] : [warning]),
    ...(role.notAfter && request.notAfter ? ['the not_after field was provided but the role has its own'] : []),
    ...names.warnings,
    ...(brought ? ['specified CSR contained a Basic Constraints extension that was ignored during issuance'] : []),
  ]
}
