import { cpus, freemem, hostname, release, totalmem, type, uptime } from 'node:os'
import { Type } from 'typebox'
import { data, timestamp } from '../../answers.ts'
import { endpoint, noFields } from '../context.ts'

const hostInfo = Type.Object({
  timestamp,
  host: Type.Object({
    hostname: Type.String(),
    os: Type.String(),
    kernelVersion: Type.String(),
    uptime: Type.Integer(),
    bootTime: Type.Integer(),
  }),
  cpu: Type.Array(Type.Object({ cpu: Type.Integer(), modelName: Type.String(), mhz: Type.Number() })),
  memory: Type.Object({ total: Type.Integer(), free: Type.Integer() }),
})

export const readHostInfo = endpoint({
  method: 'GET',
  path: 'host-info',
  access: 'token',
  about: 'The machine of the node that answers.',
  body: noFields,
  answers: data(hostInfo),
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
      cpu: cpus().map(({ model, speed }, cpu) => ({ cpu, modelName: model, mhz: speed })),
      memory: { total: totalmem(), free: freemem() },
    }
  },
})
