import { Type } from 'typebox'
import { noData } from '../../../answers.ts'
import { badRequest } from '../../../errors.ts'
import { duration } from '../../../field.ts'
import { Answer } from '../../../route.ts'
import { endpoint } from '../../context.ts'
import { leaseId, leaseIdOf } from './fields.ts'
import { isTokenLease } from './tokens.ts'

const renewAt = (path: string) =>
  endpoint({
    method: 'POST',
    path,
    access: 'token',
    about: 'Gives a lease more time.',
    body: Type.Object({
      lease_id: leaseId,
      increment: duration({ about: 'Life asked for; 0 asks for that of the last renewal, or else of its creation.' }),
    }),
    answers: noData(),
    async run(call) {
      const id = leaseIdOf(call)
      if (isTokenLease(id)) throw badRequest('tokens cannot be renewed through this endpoint')
      const { lease, warnings } = await call.context.leases.renew(id, call.body.increment ?? 0)
      for (const warning of warnings) call.warn(warning)
      return new Answer({ lease })
    },
  })

export const renewLease = renewAt('leases/renew')
export const renewLeaseAt = renewAt('leases/renew/:lease_id*')
export const renewLeaseOlder = renewAt('renew')
export const renewLeaseAtOlder = renewAt('renew/:lease_id*')
