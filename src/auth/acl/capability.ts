import type { Capability } from '../../route.ts'

/** A set of capabilities as a number, one bit each. */
export type Capabilities = number

const bits: Readonly<Record<Capability, number>> = {
  create: 1,
  read: 2,
  update: 4,
  patch: 8,
  delete: 16,
  list: 32,
  sudo: 64,
  deny: 128,
}

/** Alphabetical, as answers list them. */
const names = (Object.keys(bits) as Capability[]).sort()

export const denyBit: Capabilities = bits.deny

/** The bit of one capability. */
export const bit = (capability: Capability): Capabilities => bits[capability]

/** Whether `word` is one of Vault's capabilities. */
export const isCapability = (word: string): word is Capability => Object.hasOwn(bits, word)

/** The set of several capabilities; `deny` erases the others. */
export const capabilitySet = (list: readonly Capability[]): Capabilities =>
  unite(
    0,
    list.reduce((set, capability) => set | bits[capability], 0),
  )

/** Both sets together; a `deny` in either erases the rest. */
export function unite(one: Capabilities, other: Capabilities): Capabilities {
  const both = one | other
  return both & denyBit ? denyBit : both
}

/** The names in a set, sorted. */
export const capabilityNames = (set: Capabilities): Capability[] => names.filter((name) => set & bits[name])
