import { ApiError } from '../../../errors.ts'
import type { CertificationRequest } from '../../../x509/request.ts'
import type { Authority } from '../authority/authority.ts'
import { decide, type Explanation, explain } from '../roles/decide.ts'
import type { Circumstances, Decision } from '../roles/decision.ts'
import type { Check, Refusal } from '../roles/refusal.ts'
import type { NameRequest } from '../roles/request.ts'
import type { Role } from '../roles/role.ts'
import { contentsOf } from './contents.ts'
import { leftOut } from './csr.ts'
import { refusalOfChain } from './issuance.ts'
import { type AbleIssuer, ableIssuer } from './issuer.ts'
import { issuerPartOf } from './leaf.ts'
import { withinIssuer } from './lifetime.ts'
import { warnOfWeakKey } from './signature.ts'
import { judgeDecision } from './trial.ts'

/** A request to issue, or with a CSR to sign. */
export interface Rehearsed {
  readonly role: Role
  readonly request: NameRequest
  readonly circumstances: Circumstances
  readonly authority: Authority
  /** Of the issuer. */
  readonly reference: string
  /** Absent for issue, whose key is not made yet. */
  readonly csr: CertificationRequest | undefined
}

/** The result of issue or sign, without a key and a signature: the check of every value, and the warnings. */
export function rehearse(rehearsed: Rehearsed): Explanation {
  const { role, request, circumstances, authority, reference } = rehearsed
  const able = attempt(notAble, () => ableIssuer(authority, reference, 'issuing-certificates'))
  const issuer = { subject: 'issuer', value: able.value?.issuer.row.id ?? reference, refusal: able.refusal }
  const said = explain(role, request, circumstances)
  if (able.value === undefined || !said.allowed) return explanation([issuer, ...said.checks], said.warnings)
  const more = complete(rehearsed, able.value, decide(role, request, circumstances))
  const checks = said.checks.map((check) => (check.subject === 'validity' ? { ...check, refusal: more.late } : check))
  const certificate = more.faulty === undefined ? [] : [{ subject: 'certificate', value: '', refusal: more.faulty }]
  return explanation([issuer, ...checks, ...certificate], [...said.warnings, ...more.warnings])
}

const explanation = (checks: readonly Check[], warnings: readonly string[]): Explanation => ({
  allowed: checks.every(({ refusal }) => refusal === undefined),
  checks,
  warnings,
})

type Rule = Omit<Refusal, 'text'>

const notAble: Rule = { rule: 'the issuer must be there, with its key and this usage', setting: 'issuer_ref' }
const tooLate: Rule = { rule: 'the issuer ends before', setting: 'leaf_not_after_behavior of the issuer' }
const unwritable: Rule = { rule: 'the URLs of the issuer must be complete', setting: 'config/cluster' }
const invalid: Rule = { rule: 'a certificate must be valid under RFC 5280, and not too large' }
const outside: Rule = { rule: 'a certificate must be within the constraints of the CA certificates above it' }

/** @returns the refusals beyond the role's: of the validity and of the certificate as a whole; the warnings */
function complete({ role, circumstances, authority, csr }: Rehearsed, able: AbleIssuer, decision: Decision) {
  const within = attempt(tooLate, () => withinIssuer(able.issuer, decision.validity, circumstances.now))
  const part = attempt(unwritable, () => issuerPartOf(authority, able))
  const judgement = judgeDecision({ ...decision, validity: within.value ?? decision.validity }, csr?.spki, part.value)
  const constraint = refusalOfChain(contentsOf(decision), part.value?.chain ?? [])
  const refusal = part.refusal ?? refusalFor(invalid, judgement.refusal) ?? refusalFor(outside, constraint)
  const warnings: string[] = []
  const omission = csr !== undefined && role.useCsrSans ? leftOut(csr) : undefined
  if (omission !== undefined) warnings.push(omission)
  warnOfWeakKey({ publicKey: able.issuer.certificate.publicKey() }, (text) => warnings.push(text))
  if (csr !== undefined) warnings.push(...judgement.warnings)
  return { late: within.refusal, faulty: refusal, warnings }
}

const refusalFor = (rule: Rule, text: string | undefined): Refusal | undefined =>
  text === undefined ? undefined : { text, ...rule }

type Attempt<T> =
  | { readonly value: T; readonly refusal?: undefined }
  | { readonly value?: undefined; readonly refusal: Refusal }

/** @throws every error but a 400 */
function attempt<T>(rule: Rule, work: () => T): Attempt<T> {
  try {
    return { value: work() }
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return { refusal: { text: error.message, ...rule } }
    throw error
  }
}
