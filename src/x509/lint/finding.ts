/** A fault of a certificate that is about to be signed. */
export interface Finding {
  /** A short name of the rule, for clients and logs. */
  readonly rule: string
  /** A sentence that describes the fault. */
  readonly text: string
  /** An error makes the certificate invalid under RFC 5280. */
  readonly severity: 'error' | 'warning'
}

/** A fault that makes the certificate invalid under RFC 5280. */
export const error = (rule: string, text: string): Finding => ({ rule, text, severity: 'error' })
/** A fault with which the certificate is issued all the same. */
export const warning = (rule: string, text: string): Finding => ({ rule, text, severity: 'warning' })
