import { badRequest } from '../../../errors.ts'
import { isDefault } from './authority.ts'

/** The reference's rule for names: a word character at both ends, `-` and `.` inside too. */
const pattern = /^\w(?:[\w.-]*\w)?$/
const longest = 512

/**
 * Checks the name of a new issuer or key, or the new name of one.
 * @param what `issuer` or `key`
 * @param taken whether another one has the name
 * @param invalid the refusal of its characters
 * @throws ApiError 400
 */
export function checkName(
  what: 'issuer' | 'key',
  name: string,
  taken: boolean,
  invalid = `${what} name contained invalid characters`,
): void {
  if (isDefault(name)) throw badRequest(`reserved keyword 'default' can not be used as ${what} name`)
  if (!pattern.test(name) || name.length > longest) throw badRequest(invalid)
  if (taken) throw badRequest(`${what} name already in use`)
}
