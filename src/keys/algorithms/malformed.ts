import { badRequest } from '../../errors.ts'

/** The refusal of a key from outside: says what is wrong with it, never its value. */
export const malformed = (why: string, cause?: unknown): Error =>
  badRequest(`error parsing asymmetric key: ${why}`, { cause })
