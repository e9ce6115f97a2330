import { NotDer } from '../crypto/der.ts'

/**
 * A certificate, request or part of one that cannot be read: the one error of every reader here. Its message is a sentence for
 * the caller and never repeats the bytes; routes make a 400 of it.
 */
export class Malformed extends Error {}

/**
 * Names what was being read in the error of the reader.
 * @throws Malformed
 */
export function reading<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof NotDer || error instanceof Malformed) {
      throw new Malformed(`${what}: ${error.message}`, { cause: error })
    }
    throw error
  }
}
