import { isMailbox } from '../../../../x509/mailbox.ts'
import type { Refusal } from '../refusal.ts'
import type { Role } from '../role.ts'
import type { Domains } from './domains.ts'
import { type Objection, objectionTo } from './name.ts'
import { isPlainText, shorten } from './text.ts'

/** Whether names are checked only against the limits of a certificate. */
export const isUnrestricted = ({ cnValidations }: Role): boolean =>
  cnValidations.length === 1 && cnValidations[0] === 'disabled'

const absent: Refusal = {
  text: 'the common_name field is required, or must be provided in a CSR with "use_csr_common_name" set to true, unless "require_cn" is set to false',
  rule: 'there is no common name',
  setting: 'require_cn=false',
}

/** @param name '' when it is absent */
export function refusalOfCommonName(name: string, role: Role, domains: Domains): Refusal | undefined {
  if (name === '') return role.requireCn ? absent : undefined
  const objection = isPlainText(name) ? policyOn(name, role, domains) : unprintable
  return objection && { text: `common name ${shorten(name)} not allowed by this role`, ...objection }
}

const unprintable: Objection = { rule: 'a name must not contain control characters' }

function policyOn(name: string, role: Role, domains: Domains): Objection | undefined {
  if (isUnrestricted(role)) return undefined
  const objection = objectionTo(name, role, domains)
  if (objection !== undefined) return objection
  const kind = name.includes('@') ? 'email' : 'hostname'
  if (role.cnValidations.length === 0 || role.cnValidations.includes(kind)) return undefined
  const both = [...role.cnValidations, kind].join(',')
  return { rule: `a common name of kind ${kind} is not allowed`, setting: `cn_validations=${both}` }
}

/** Whether a text can be a dNSName at all. */
export const isPrintable = (name: string): boolean => /^[\x21-\x7e]+$/.test(name)

/** @param name a DNS name in ASCII, or as written in a CSR */
export function refusalOfDnsName(name: string, role: Role, domains: Domains): Refusal | undefined {
  const objection = isPrintable(name) ? objectionUnlessOpen(name, role, domains) : unprintable
  return objection && { text: `subject alternate name ${shorten(name)} not allowed by this role`, ...objection }
}

/** A name that cannot be a DNS name at all. */
export const refusalOfMalformed = (name: string): Refusal => ({
  text: `subject alternate name ${shorten(name)} not allowed by this role`,
  rule: 'it is too long, cannot be converted by IDNA, or has a label that is empty or too long',
})

/** The refusal of an e-mail name; undefined if the role allows it. @param address as requested, its host in ASCII */
export function refusalOfEmail(address: string, role: Role, domains: Domains): Refusal | undefined {
  const objection = isMailbox(address) ? objectionUnlessOpen(address, role, domains) : notMailbox(address)
  return objection && { text: `email address ${shorten(address)} not allowed by this role`, ...objection }
}

const notMailbox = (address: string): Objection => ({ rule: `${shorten(address)} is not a mailbox in ASCII` })

const objectionUnlessOpen = (name: string, role: Role, domains: Domains): Objection | undefined =>
  isUnrestricted(role) ? undefined : objectionTo(name, role, domains)
