import { Type } from 'typebox'
import { endpoint } from '../../context.ts'
import { leaseId, leaseIdOf, refuseTokens, sync } from './fields.ts'

/** A single lease is always revoked before the answer, whatever `sync` says. */
const revokeAt = (path: string) =>
  endpoint({
    method: 'POST',
    path,
    access: 'token',
    about: 'Revokes a lease; an unknown one is no error.',
    body: Type.Object({ lease_id: leaseId, sync }),
    async run(call) {
      const id = leaseIdOf(call)
      refuseTokens(id)
      await call.context.leases.revoke(id)
      return undefined
    },
  })

export const revokeLease = revokeAt('leases/revoke')
export const revokeLeaseAt = revokeAt('leases/revoke/:lease_id*')
export const revokeLeaseOlder = revokeAt('revoke')
export const revokeLeaseAtOlder = revokeAt('revoke/:lease_id*')
