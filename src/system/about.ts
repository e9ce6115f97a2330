import { availableParallelism, freemem, hostname, release, totalmem, type, uptime } from 'node:os'
import { Type } from 'typebox'
import { describeApi } from '../request/openapi.ts'
import { Answer, type Data, route } from '../route.ts'
import type { SystemContext } from './context.ts'
import { apiVersion } from './status.ts'

const nothing = Type.Object({})

const documents = new WeakMap<SystemContext, string>()

/** Printed once: whoever asks needs no token. */
function specification(context: SystemContext): string {
  const document = documents.get(context) ?? JSON.stringify(describeApi(context.sections(), apiVersion))
  documents.set(context, document)
  return document
}

/** What this server, its machine and its interface are. */
export const aboutRoutes = [
  route<SystemContext, typeof nothing>({
    method: 'GET',
    path: 'internal/specs/openapi',
    access: 'public',
    about: 'Every path of this server as an OpenAPI 3.1 document; engines stand under a parameter for their mount.',
    body: nothing,
    danger: 'none',
    run: ({ context }) => new Answer({ raw: { type: 'application/json', body: specification(context) } }),
  }),
  route<SystemContext, typeof nothing>({
    method: 'LIST',
    path: 'version-history',
    access: 'token',
    about: 'The API level of this cluster since it was made.',
    body: nothing,
    danger: 'none',
    run: ({ context }) => ({
      keys: [apiVersion],
      key_info: {
        [apiVersion]: {
          previous_version: null,
          timestamp_installed: new Date(context.status.createdAt).toISOString(),
          build_date: '',
        },
      },
    }),
  }),
  route<SystemContext, typeof nothing>({
    method: 'GET',
    path: 'host-info',
    access: 'token',
    about: 'The machine of the node that answers.',
    body: nothing,
    danger: 'none',
    run: ({ context }): Data => {
      const now = context.status.clock.wall()
      const bootTime = Math.floor(now / 1000 - uptime())
      return {
        timestamp: new Date(now).toISOString(),
        host: {
          hostname: hostname(),
          os: type().toLowerCase(),
          kernelVersion: release(),
          uptime: Math.floor(uptime()),
          bootTime,
        },
        cpu: { count: availableParallelism() },
        memory: { total: totalmem(), free: freemem() },
      }
    },
  }),
  route<SystemContext, typeof nothing>({
    method: 'GET',
    path: 'ha-status',
    access: 'token',
    about: 'The node that answers, which is active as every node is; nodes do not know of each other.',
    body: nothing,
    inject: true,
    danger: 'none',
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
  }),
]
