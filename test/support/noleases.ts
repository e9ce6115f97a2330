import type { TokenLeases } from '../../src/auth/revoke.ts'

/** For tokens without leases. */
export const noLeases: TokenLeases = { holders: async () => new Set(), revokeByToken: async () => 0 }
