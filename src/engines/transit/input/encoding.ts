import { badRequest } from '../../../errors.ts'

/**
 * How bytes are to be written.
 * @param shown how the refusal writes any other format: random quotes it, hash does not
 * @throws ApiError 400
 */
export function encodingOf(format: string, shown: string): 'hex' | 'base64' {
  if (format === 'hex' || format === 'base64') return format
  throw badRequest(`unsupported encoding format ${shown}; must be "hex" or "base64"`)
}
