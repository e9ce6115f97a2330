import type { Refusal } from './refusal.ts'
import type { CsrKey } from './request.ts'
import type { Role } from './role.ts'

type KeyRules = Pick<Role, 'keyType' | 'keyBits'>

const smallestRsa = 2048
const smallestEc = 224
const known = new Set(['rsa', 'ec', 'ed25519'])

/** The refusal of a key that a role does not sign, by its type or size. */
export function refusalOfKey({ keyType, keyBits }: KeyRules, { type, bits }: CsrKey): Refusal | undefined {
  if (keyType === 'any') return weakness(type, bits)
  if (type !== keyType) {
    const text = `role requires keys of type ${keyType}`
    return { text, rule: `the CSR's key is of type ${type}`, setting: known.has(type) ? `key_type=${type}` : undefined }
  }
  if (bits < keyBits) {
    return {
      text: `role requires a minimum of a ${keyBits}-bit key, but CSR's key is ${bits} bits`,
      rule: `key_bits is ${keyBits}`,
      setting: tooSmall(type, bits) ? undefined : `key_bits=${bits}`,
    }
  }
  return undefined
}

const tooSmall = (type: string, bits: number): boolean =>
  (type === 'rsa' && bits < smallestRsa) || (type === 'ec' && bits < smallestEc)

function weakness(type: string, bits: number): Refusal | undefined {
  if (!known.has(type)) {
    return { text: `Unknown key type in CSR: ${type}`, rule: 'keys are rsa, ec or ed25519' }
  }
  if (!tooSmall(type, bits)) return undefined
  const [name, smallest] = type === 'rsa' ? ['RSA', smallestRsa] : ['EC', smallestEc]
  const text = `${name} keys < ${smallest} bits are unsafe and not supported`
  return { text, rule: `the CSR's key has ${bits} bits` }
}

/** The reason why a role makes no keys; undefined when it does. */
export const refusalToMakeKey = ({ keyType }: KeyRules): Refusal | undefined =>
  keyType === 'any'
    ? {
        text: 'role key type "any" not allowed for issuing certificates, only signing',
        rule: 'key_type any only allows signing CSRs',
        setting: 'key_type=rsa, ec or ed25519',
      }
    : undefined
