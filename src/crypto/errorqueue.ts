import { getFips } from 'node:crypto'

/**
 * Clears OpenSSL's error queue of this thread. A PKCS#11 module that shares OpenSSL with node leaves the errors of its
 * failed calls there, and the next user of the queue takes them for its own: the parsing of a key, a read or write of a
 * TLS connection. Asking for FIPS mode is the cheapest call of node:crypto that clears it (0.4 µs); a test checks that.
 */
export const clearErrorQueue = (): void => void getFips()
