import { Type } from 'typebox'
import { done } from '../../../answers.ts'
import { boolean } from '../../../field.ts'
import { endpoint } from '../../context.ts'
import { leaseId, leaseIdOf } from './fields.ts'
import { isTokenLease, partsOf } from './tokens.ts'

const sync = boolean({ about: 'Has no effect: one lease is revoked before the answer.' })

/** A single lease is always revoked before the answer, whatever `sync` says. */
const revokeAt = (path: string) =>
  endpoint({
    method: 'POST',
    path,
    access: 'token',
    about: 'Revokes a lease, or a token by its lease; an unknown lease is no error.',
    body: Type.Object({ lease_id: leaseId, sync }),
    answers: done,
    async run(call) {
      const id = leaseIdOf(call)
      const { leases, tokens } = call.context
      if (!isTokenLease(id)) await leases.revoke(id)
      else {
        const stored = await tokens.idAt(...partsOf(id))
        // An unknown one has ended already, as far as the caller can tell: repeating a revocation must not fail.
        if (stored !== undefined) await tokens.revoke(stored)
      }
      return undefined
    },
  })

export const revokeLease = revokeAt('leases/revoke')
export const revokeLeaseAt = revokeAt('leases/revoke/:lease_id*')
export const revokeLeaseOlder = revokeAt('revoke')
export const revokeLeaseAtOlder = revokeAt('revoke/:lease_id*')
