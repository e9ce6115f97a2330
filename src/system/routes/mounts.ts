import { Type } from 'typebox'
import { data, done, mapOf, titled } from '../../answers.ts'
import { badRequest } from '../../errors.ts'
import { boolean, map, raw, text } from '../../field.ts'
import { describeMount, type MountRecord, mountAnswer } from '../../request/mounts/mount.ts'
import type { Data } from '../../route.ts'
import { endpoint, noFields } from '../context.ts'

const secretMount = titled('Mount', mountAnswer)

const mountFields = Type.Object({
  type: text({ about: 'The engine: transit or pki.' }),
  description: text({ about: 'For people.' }),
  config: raw({ about: 'default_lease_ttl, max_lease_ttl and the other settings that tune takes.' }),
  options: map({ about: 'Options of the engine.' }),
  local: boolean({ about: 'Kept and shown; there is no replication.' }),
  seal_wrap: boolean({ about: 'Kept and shown; all key material is wrapped by the token anyway.' }),
  external_entropy_access: boolean({ about: 'Not available; false is accepted.' }),
  plugin_name: text({ about: 'The type under its other name.' }),
  plugin_version: text({ about: 'Not available; empty is accepted.' }),
})

/** Mounts of secrets engines; the others stand under auth/. */
export const isSecret = (mount: MountRecord): boolean => !mount.path.startsWith('auth/')

/** Mount paths end in a slash; callers write them with or without. */
export const withSlash = (path: string): string => (path.endsWith('/') ? path : `${path}/`)

export const listMounts = endpoint({
  method: 'GET',
  path: 'mounts',
  access: 'token',
  about: 'All mounts of secrets engines, by path.',
  body: noFields,
  inject: true,
  answers: data(mapOf(secretMount)),
  async run({ context }): Promise<Data> {
    const mounts = (await context.mounts.list()).filter(isSecret)
    return Object.fromEntries(mounts.map((mount) => [mount.path, describeMount(mount)]))
  },
})

export const readMount = endpoint({
  method: 'GET',
  path: 'mounts/:path*',
  access: 'token',
  about: 'One mount.',
  body: noFields,
  inject: true,
  answers: data(secretMount),
  async run({ context, params }): Promise<Data> {
    const path = withSlash(params.path ?? '')
    const found = await context.mounts.at(path)
    if (found === undefined || !isSecret(found)) throw badRequest(`No secret engine mount at ${path}`)
    return describeMount(found)
  },
})

export const enableMount = endpoint({
  method: 'POST',
  path: 'mounts/:path*',
  access: 'token',
  about: 'Mounts an engine.',
  body: mountFields,
  answers: done,
  async run({ context, params, body }) {
    if (body.external_entropy_access === true) throw badRequest('external_entropy_access is not available')
    if (body.plugin_version) throw badRequest('plugin_version is not available: engines are built in')
    await context.mounts.enable({
      path: params.path ?? '',
      type: (body.type === 'plugin' ? '' : body.type) || body.plugin_name || '',
      description: body.description,
      config: body.config,
      options: body.options,
      local: body.local,
      sealWrap: body.seal_wrap,
    })
    return undefined
  },
})

export const disableMount = endpoint({
  method: 'DELETE',
  path: 'mounts/:path*',
  access: 'token',
  about: 'Removes a mount and everything in it.',
  body: noFields,
  answers: done,
  async run({ context, params }) {
    await context.mounts.disable(params.path ?? '')
    return undefined
  },
})
