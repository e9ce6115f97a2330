import { badRequest } from '../errors.ts'

/**
 * The encoding of bytes in an answer.
 * @param shown the format as written in the refusal: random quotes it, hash does not
 * @throws ApiError 400
 */
export function encodingOf(format: string, shown: string): 'hex' | 'base64' {
  if (format === 'hex' || format === 'base64') return format
  throw badRequest(`unsupported encoding format ${shown}; must be "hex" or "base64"`)
}
