/** The type of keys whose versions are in external tokens, each under a managed key (sys/managed-keys). */
export const managedType = 'managed_key'
