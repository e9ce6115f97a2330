import { badRequest } from '../../errors.ts'

/** Ends the reading of a policy. */
export function fail(reason: string): never {
  throw badRequest(`failed to parse policy: ${reason}`)
}

export const quoted = (text: string): string => JSON.stringify(text)
