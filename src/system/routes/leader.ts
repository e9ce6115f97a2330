import { Answer } from '../../route.ts'
import { noFields, statusEndpoint } from '../context.ts'

export const readLeader = statusEndpoint({
  method: 'GET',
  path: 'leader',
  access: 'public',
  audited: false,
  about: 'Every node serves; there is no leader.',
  body: noFields,
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
