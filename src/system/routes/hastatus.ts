import { hostname } from 'node:os'
import { Type } from 'typebox'
import { data } from '../../answers.ts'
import { endpoint, noFields } from '../context.ts'
import { apiVersion } from '../version.ts'

const node = Type.Object({
  hostname: Type.String(),
  api_address: Type.String(),
  cluster_address: Type.String(),
  active_node: Type.Boolean(),
  last_echo: Type.Null(),
  version: Type.String(),
})

export const readHaStatus = endpoint({
  method: 'GET',
  path: 'ha-status',
  access: 'token',
  about: 'The node that answers, which is active as every node is; nodes do not know of each other.',
  body: noFields,
  inject: true,
  answers: data(Type.Object({ nodes: Type.Array(node) })),
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
