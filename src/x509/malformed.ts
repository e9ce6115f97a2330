import { NotDer } from '../crypto/der.ts'

/**
 * Thrown for a certificate, a request or a part of one that cannot be read. The message is a sentence for the caller
 * and never repeats the bytes; routes turn it into a 400.
 */
export class Malformed extends Error {}

/**
 * Adds the name of the structure to a reader's error.
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
