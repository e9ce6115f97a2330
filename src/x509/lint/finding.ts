/** What is wrong with a certificate that is about to be signed. */
export interface Finding {
  /** A short name of the rule, for clients and logs. */
  readonly rule: string
  /** A sentence with the RFC's section. */
  readonly text: string
  /** An error is what RFC 5280 makes invalid. */
  readonly severity: 'error' | 'warning'
}

export const error = (rule: string, text: string): Finding => ({ rule, text, severity: 'error' })
export const warning = (rule: string, text: string): Finding => ({ rule, text, severity: 'warning' })
