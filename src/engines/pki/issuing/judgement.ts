import { lint } from '../../../x509/lint.ts'

/** The result of the checks of a certificate that is about to be signed. */
export interface Judgement {
  /** The reason why it must not be signed. */
  readonly refusal?: string
  readonly warnings: readonly string[]
}

/** Bytes without the signature: with it they fit into the database's 65,535 and the limits of TLS implementations. */
const mostBytes = 64_000

const faultless: Judgement = { warnings: [] }

/** Whether RFC 5280 makes a certificate invalid, or it is too large. @param tbs TBSCertificate, DER */
export function judge(tbs: Buffer): Judgement {
  if (tbs.length > mostBytes) {
    const refusal = `the certificate would have ${tbs.length} bytes without its signature, more than ${mostBytes}`
    return { refusal, warnings: [] }
  }
  const findings = lint(tbs)
  if (findings.length === 0) return faultless
  const errors = findings.filter(({ severity }) => severity === 'error')
  if (errors.length === 0) return { warnings: findings.map(({ rule, text }) => `${text} (${rule})`) }
  const reasons = errors.map(({ rule, text }) => `${text} (${rule})`)
  return { refusal: `the certificate would be invalid: ${reasons.join('; ')}`, warnings: [] }
}
