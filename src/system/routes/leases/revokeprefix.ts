import { Type } from 'typebox'
import { done } from '../../../answers.ts'
import { boolean } from '../../../field.ts'
import { endpoint, noFields } from '../../context.ts'
import { prefixOf } from './fields.ts'

const sync = boolean({ about: 'Whether to answer only when everything is revoked; true when absent.', initial: true })

const revokePrefixAt = (path: string) =>
  endpoint({
    method: 'POST',
    path,
    access: 'sudo',
    about: 'Revokes every lease below a prefix.',
    body: Type.Object({ sync }),
    answers: done,
    async run(call) {
      const { leases } = call.context
      const prefix = prefixOf(call)
      await ((call.body.sync ?? true) ? leases.revokePrefix(prefix) : leases.expirePrefix(prefix))
      return undefined
    },
  })

const revokeForceAt = (path: string) =>
  endpoint({
    method: 'POST',
    path,
    access: 'sudo',
    about: 'As revoke-prefix, and removes leases that an engine fails to revoke.',
    body: noFields,
    answers: done,
    async run(call) {
      await call.context.leases.revokeForce(prefixOf(call))
      return undefined
    },
  })

export const revokePrefix = revokePrefixAt('leases/revoke-prefix/:prefix*')
export const revokePrefixOlder = revokePrefixAt('revoke-prefix/:prefix*')
export const revokeForce = revokeForceAt('leases/revoke-force/:prefix*')
export const revokeForceOlder = revokeForceAt('revoke-force/:prefix*')
