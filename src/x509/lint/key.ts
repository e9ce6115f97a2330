import type { SubjectKey } from '../publickey.ts'
import { type Finding, warning } from './finding.ts'

/** FIPS 186-5 section A.1.1: exponents above 2¹⁶. Smaller ones are allowed by RFC 8017. */
const leastExponent = 65_537n

/** The faults of a public key that the certificate may have all the same. */
export const lintKey = (key: SubjectKey): readonly Finding[] =>
  key.family === 'rsa' && key.exponent < leastExponent
    ? [warning('rsa_exponent', `the exponent of the RSA key, ${key.exponent}, is below ${leastExponent}`)]
    : []
