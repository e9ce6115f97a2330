import { Type } from 'typebox'
import { unknownOptions } from '../../audit/options.ts'
import { badRequest } from '../../errors.ts'
import { boolean, map, text } from '../../field.ts'
import type { Call, Data, Outcome } from '../../route.ts'
import { endpoint, noFields, type SystemContext } from '../context.ts'

const deviceFields = Type.Object({
  type: text({ about: 'The kind of device: file.' }),
  description: text({ about: 'For people.' }),
  options: map({
    about:
      'file_path; mode (0600), prefix, hmac_accessor (true), log_raw (false), elide_list_responses (false), format (json).',
  }),
  local: boolean({ about: 'Kept and shown; there is no replication.' }),
})

/** @throws ApiError 400 for device types of Vault that are not available here, and for unknown ones */
function requireFile(type: string | undefined): void {
  if (type === undefined || type === '') throw badRequest('audit backend type must be specified as a string')
  if (type === 'syslog' || type === 'socket') {
    throw badRequest(`audit devices of type ${type} are not available on this server: use a file`)
  }
  if (type !== 'file') throw badRequest(`unknown audit backend type: ${type.slice(0, 100)}`)
}

async function enable({ context, params, body, warn }: Call<SystemContext, typeof deviceFields>): Promise<Outcome> {
  requireFile(body.type)
  const { description = '', options = {}, local = false } = body
  await context.audit.enable({ path: params.path ?? '', type: 'file', description, options, local })
  for (const name of unknownOptions(options)) warn(`option ${name.slice(0, 100)} is unknown and has no effect`)
  return undefined
}

export const listAuditDevices = endpoint({
  method: 'GET',
  path: 'audit',
  access: 'sudo',
  about: 'All audit devices, by path.',
  body: noFields,
  inject: true,
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
  run: enable,
})

export const disableAuditDevice = endpoint({
  method: 'DELETE',
  path: 'audit/:path*',
  access: 'sudo',
  about: 'Disables an audit device; its file stays.',
  body: noFields,
  async run({ context, params }) {
    await context.audit.disable(params.path ?? '')
    return undefined
  },
})
