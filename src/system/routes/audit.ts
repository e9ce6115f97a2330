import { Type } from 'typebox'
import { data, done, mapOf } from '../../answers.ts'
import { isDeviceType, unknownOptions } from '../../audit/options.ts'
import { badRequest } from '../../errors.ts'
import { boolean, map, text } from '../../field.ts'
import type { Call, Data, Outcome } from '../../route.ts'
import { endpoint, noFields, type SystemContext } from '../context.ts'

const device = Type.Object({
  description: Type.String(),
  local: Type.Boolean(),
  options: mapOf(Type.String()),
  path: Type.String(),
  type: Type.String(),
})

const deviceFields = Type.Object({
  type: text({ about: 'The kind of device: file or socket.' }),
  description: text({ about: 'For people.' }),
  options: map({
    about:
      'Of a file: file_path (or stdout), mode (0600), prefix. Of a socket: address, socket_type (tcp, udp, unix), write_timeout (2s). Of both: hmac_accessor (true), log_raw (false), elide_list_responses (false), format (json).',
  }),
  local: boolean({ about: 'Kept and shown; there is no replication.' }),
})

/** @throws ApiError 400 for device types of Vault that are not available here, and for unknown ones */
function requireKnown(type: string | undefined): string {
  if (type === undefined || type === '') throw badRequest('audit backend type must be specified as a string')
  if (isDeviceType(type)) return type
  if (type === 'syslog')
    throw badRequest('audit devices of type syslog are not available on this server: use a file or a socket')
  throw badRequest(`unknown audit backend type: ${type.slice(0, 100)}`)
}

async function enable({ context, params, body, warn }: Call<SystemContext, typeof deviceFields>): Promise<Outcome> {
  const type = requireKnown(body.type)
  const { description = '', options = {}, local = false } = body
  await context.audit.enable({ path: params.path ?? '', type, description, options, local })
  for (const name of unknownOptions(type, options)) warn(`option ${name.slice(0, 100)} is unknown and has no effect`)
  return undefined
}

export const listAuditDevices = endpoint({
  method: 'GET',
  path: 'audit',
  access: 'sudo',
  about: 'All audit devices, by path.',
  body: noFields,
  inject: true,
  answers: data(mapOf(device)),
  async run({ context }): Promise<Data> {
    const devices = await context.audit.list()
    return Object.fromEntries(
      devices.map(({ path, type, description, options, local }) => [path, { description, local, options, path, type }]),
    )
  },
})

export const enableAuditDevice = endpoint({
  method: 'POST',
  path: 'audit/:path*',
  access: 'sudo',
  about: 'Enables an audit device; every worker writes to it before the answer.',
  body: deviceFields,
  answers: done,
  run: enable,
})

export const disableAuditDevice = endpoint({
  method: 'DELETE',
  path: 'audit/:path*',
  access: 'sudo',
  about: 'Disables an audit device; a file of it stays.',
  body: noFields,
  answers: done,
  async run({ context, params }) {
    await context.audit.disable(params.path ?? '')
    return undefined
  },
})
