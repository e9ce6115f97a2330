import { hostname } from 'node:os'
import { endpoint, noFields } from '../context.ts'
import { apiVersion } from '../version.ts'

export const readHaStatus = endpoint({
  method: 'GET',
  path: 'ha-status',
  access: 'token',
  about: 'The node that answers, which is active as every node is; nodes do not know of each other.',
  body: noFields,
  inject: true,
  run: () => ({
    nodes: [
      {
        hostname: hostname(),
        api_address: '',
        cluster_address: '',
        active_node: true,
        last_echo: null,
        version: apiVersion,
      },
    ],
  }),
})
