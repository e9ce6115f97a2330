import { Type } from 'typebox'
import { unknownOptions } from '../audit/options.ts'
import { badRequest } from '../errors.ts'
import { boolean, map, text } from '../field.ts'
import { type Call, type Data, type Outcome, route } from '../route.ts'
import type { SystemContext } from './context.ts'

const nothing = Type.Object({})
const enabling = Type.Object({
  type: text({ about: 'The kind of device: file.' }),
  description: text({ about: 'For people.' }),
  options: map({
    about:
      'file_path; mode (0600), prefix, hmac_accessor (true), log_raw (false), elide_list_responses (false), format (json).',
  }),
  local: boolean({ about: 'Kept and shown; there is no replication.' }),
})
const hashing = Type.Object({ input: text({ about: 'The text to look for in an audit file.' }) })

/** @throws ApiError 400 for kinds of devices that there are elsewhere, and for those that there are nowhere */
function requireFile(type: string | undefined): void {
  if (type === undefined || type === '') throw badRequest('audit backend type must be specified as a string')
  if (type === 'syslog' || type === 'socket') {
    throw badRequest(`audit devices of type ${type} are not available on this server: use a file`)
  }
  if (type !== 'file') throw badRequest(`unknown audit backend type: ${type.slice(0, 100)}`)
}

async function enable({ context, params, body, warn }: Call<SystemContext, typeof enabling>): Promise<Outcome> {
  requireFile(body.type)
  const { description = '', options = {}, local = false } = body
  await context.audit.enable({ path: params.path ?? '', type: 'file', description, options, local })
  for (const name of unknownOptions(options)) warn(`option ${name.slice(0, 100)} is not known here and does nothing`)
  return undefined
}

export const auditRoutes = [
  route<SystemContext, typeof nothing>({
    method: 'GET',
    path: 'audit',
    access: 'sudo',
    about: 'All audit devices, by path.',
    body: nothing,
    inject: true,
    danger: 'none',
    async run({ context }): Promise<Data> {
      const devices = await context.audit.list()
      return Object.fromEntries(
        devices.map(({ path, type, description, options, local }) => [
          path,
          { description, local, options, path, type },
        ]),
      )
    },
  }),
  route<SystemContext, typeof enabling>({
    method: 'POST',
    path: 'audit/:path*',
    access: 'sudo',
    about: 'Enables an audit device; every worker writes to it before the answer.',
    body: enabling,
    danger: 'custody',
    run: enable,
  }),
  route<SystemContext, typeof nothing>({
    method: 'DELETE',
    path: 'audit/:path*',
    access: 'sudo',
    about: 'Disables an audit device; its file stays.',
    body: nothing,
    danger: 'destructive',
    async run({ context, params }) {
      await context.audit.disable(params.path ?? '')
      return undefined
    },
  }),
  route<SystemContext, typeof hashing>({
    method: 'POST',
    path: 'audit-hash/:path*',
    access: 'token',
    about: 'What stands in the file of an audit device for a text.',
    body: hashing,
    inject: true,
    danger: 'none',
    async run({ context, params, body }) {
      if (!body.input) throw badRequest('the "input" parameter is empty')
      return { hash: await context.audit.hash(params.path ?? '', body.input) }
    },
  }),
]
