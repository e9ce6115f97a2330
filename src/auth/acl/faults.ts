import { badRequest } from '../../errors.ts'

/** Ends the reading of a policy. */
export function fail(reason: string): never {
  throw badRequest(`failed to parse policy: ${reason}`)
}

export const quoted = (text: string): string => JSON.stringify(text)

/** The reference's text for a list of errors, here inside another text. */
export const errorList = (texts: readonly string[]): string =>
  `${texts.length === 1 ? '1 error' : `${texts.length} errors`} occurred:\n${texts.map((text) => `\t* ${text}\n`).join('')}\n`
