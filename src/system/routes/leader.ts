import { Type } from 'typebox'
import { bare } from '../../answers.ts'
import { Answer } from '../../route.ts'
import { noFields, statusEndpoint } from '../context.ts'

const leadership = Type.Object({
  ha_enabled: Type.Boolean(),
  is_self: Type.Boolean(),
  active_time: Type.String(),
  leader_address: Type.String(),
  leader_cluster_address: Type.String(),
  performance_standby: Type.Boolean(),
  performance_standby_last_remote_wal: Type.Integer(),
})

export const readLeader = statusEndpoint({
  method: 'GET',
  path: 'leader',
  access: 'public',
  audited: false,
  about: 'Every node serves; there is no leader.',
  body: noFields,
  answers: bare(leadership),
  run: () =>
    new Answer({
      bare: {
        ha_enabled: false,
        is_self: false,
        active_time: '0001-01-01T00:00:00Z',
        leader_address: '',
        leader_cluster_address: '',
        performance_standby: false,
        performance_standby_last_remote_wal: 0,
      },
    }),
})
