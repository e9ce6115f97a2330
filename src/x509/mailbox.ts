/** Mailboxes of rfc822Name (RFC 5280 section 4.2.1.6, by the grammar of RFC 2821 section 4.1.2). */

const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
const quoted = '"(?:[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\x20-\\x7e])*"'
const local = `(?:${atom}(?:\\.${atom})*|${quoted})`
const literal = '\\[[\\x21-\\x5a\\x5e-\\x7e]+\\]'
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?'
const looseLabel = '[A-Za-z0-9_-]+'

const mailbox = new RegExp(`^${local}@(?:${looseLabel}(?:\\.${looseLabel})*|${literal})$`)
const strictHost = new RegExp(`@(?:${label}(?:\\.${label})*|${literal})$`)

/**
 * Whether a text is a mailbox. Its host may have underscores, and hyphens at any place: a role may allow such hosts
 * (enforce_hostnames=false).
 */
export const isMailbox = (text: string): boolean => mailbox.test(text)

/** Whether the host of a mailbox is one by the grammar, too. */
export const hasPlainHost = (address: string): boolean => strictHost.test(address)
