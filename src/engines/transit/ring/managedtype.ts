import type { Abilities } from '../../../keys/algorithms/algorithm.ts'

/** The type of keys whose versions lie in tokens of others, each under a managed key (sys/managed-keys). */
export const managedType = 'managed_key'

/** What keys of this type can do at most; the mechanism of each version decides. */
export const managedAbilities: Abilities = { encrypt: true, sign: true, derive: false }
