import { availableParallelism, freemem, hostname, release, totalmem, type, uptime } from 'node:os'
import { endpoint, noFields } from '../context.ts'

export const readHostInfo = endpoint({
  method: 'GET',
  path: 'host-info',
  access: 'token',
  about: 'The machine of the node that answers.',
  body: noFields,
  run({ context }) {
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
})
