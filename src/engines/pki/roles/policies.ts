import { isOid } from '../../../crypto/oid.ts'
import { badRequest } from '../../../errors.ts'

/** A certificate policy (RFC 5280, 4.2.1.4). */
export interface Policy {
  readonly oid: string
  /** URI of the practice statement. */
  readonly cps?: string
  /** Text of the user notice. */
  readonly notice?: string
}

/**
 * Reads policies in every form that clients send: OIDs separated by commas, a list of OIDs or JSON objects, or such a
 * list as one JSON text.
 * @returns a text for each: the OID, or a JSON object if it has qualifiers
 * @throws ApiError 400 naming the entry
 */
export function readPolicies(value: unknown): readonly string[] {
  return listOf(value).map((entry) => {
    const policy = typeof entry === 'string' ? policyOf(entry.trim()) : qualified(entry)
    if (typeof policy !== 'string') return textOf(policy)
    const shown = typeof entry === 'string' ? entry.trim() : JSON.stringify(entry)
    throw badRequest(
      `policy identifier ${JSON.stringify(shown)} is neither a valid OID: not dotted numbers, Nor JSON Policy Identifier: ${policy}`,
    )
  })
}

/** The policies of a role. @param texts as `readPolicies` gives them */
export const policiesOf = (texts: readonly string[]): readonly Policy[] =>
  texts.map((text) => (isOid(text) ? { oid: text } : (JSON.parse(text) as Policy)))

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value.filter((entry) => entry !== '')
  if (typeof value !== 'string') return [value]
  const parsed = /^\s*[[{]/.test(value) ? parseJson(value) : undefined
  if (Array.isArray(parsed)) return parsed
  if (parsed !== undefined) return [parsed]
  return value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

const policyOf = (text: string): Policy | string => (isOid(text) ? { oid: text } : qualified(parseJson(text)))

/** @returns the reason when it is not a policy */
function qualified(value: unknown): Policy | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not a JSON object'
  const { oid, cps = '', notice = '', ...rest } = value as Readonly<Record<string, unknown>>
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) return `unknown member ${JSON.stringify(unknown)}, only oid, cps and notice`
  if (typeof oid !== 'string' || !isOid(oid)) return 'its oid is not dotted numbers'
  if (typeof cps !== 'string' || typeof notice !== 'string') return 'cps and notice must be texts'
  if (!/^[\x21-\x7e]*$/.test(cps)) return 'cps must be a URI'
  return { oid, ...(cps === '' ? {} : { cps }), ...(notice === '' ? {} : { notice }) }
}

const textOf = (policy: Policy): string =>
  policy.cps === undefined && policy.notice === undefined ? policy.oid : JSON.stringify(policy)

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
