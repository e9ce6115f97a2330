import { Type } from 'typebox'
import { data, done, mapOf } from '../../answers.ts'
import { badRequest } from '../../errors.ts'
import { raw, text } from '../../field.ts'
import { describeMount, type MountRecord, mountAnswer } from '../../request/mounts/mount.ts'
import { tuningAnswer } from '../../request/mounts/tuning.ts'
import type { Data } from '../../route.ts'
import { endpoint, noFields, type SystemContext } from '../context.ts'
import { isSecret, withSlash } from './mounts.ts'

const method = Type.Object({ ...mountAnswer, config: Type.Object({ ...tuningAnswer, token_type: Type.String() }) })

const methodFields = Type.Object({
  type: text({ about: 'The method; only token is available.' }),
  description: text({ about: 'For people.' }),
  config: raw({ about: 'Settings of the mount.' }),
})

const below = 'auth/'.length

function describe(mount: MountRecord): Data {
  const described = describeMount(mount)
  return { ...described, config: { ...mount.config, token_type: 'default-service' } }
}

const methodsOf = async ({ mounts }: SystemContext): Promise<readonly MountRecord[]> =>
  (await mounts.list()).filter((mount) => !isSecret(mount))

export const listAuthMethods = endpoint({
  method: 'GET',
  path: 'auth',
  access: 'token',
  about: 'All mounts of auth methods, by path.',
  body: noFields,
  inject: true,
  answers: data(mapOf(method)),
  async run({ context }) {
    return Object.fromEntries((await methodsOf(context)).map((mount) => [mount.path.slice(below), describe(mount)]))
  },
})

export const readAuthMethod = endpoint({
  method: 'GET',
  path: 'auth/:path*',
  access: 'sudo',
  about: 'One mount of an auth method.',
  body: noFields,
  inject: true,
  answers: data(method),
  async run({ context, params }) {
    const path = withSlash(params.path ?? '')
    const found = (await methodsOf(context)).find((mount) => mount.path === `auth/${path}`)
    if (found === undefined) throw badRequest(`No auth engine at ${path}`)
    return describe(found)
  },
})

export const enableAuthMethod = endpoint({
  method: 'POST',
  path: 'auth/:path*',
  access: 'sudo',
  about: 'Refused with an explanation: the only auth method is token, which is always mounted.',
  body: methodFields,
  answers: [],
  run({ body }) {
    if (!body.type) throw badRequest('backend type must be specified as a string')
    if (body.type === 'token') throw badRequest('token credential backend cannot be instantiated')
    throw badRequest(
      `plugin not found in the catalog: ${body.type.slice(0, 100)}. Tokens are the one way to sign in to this server`,
    )
  },
})

export const disableAuthMethod = endpoint({
  method: 'DELETE',
  path: 'auth/:path*',
  access: 'sudo',
  about: 'Removes the mount of an auth method; nothing there is no error.',
  body: noFields,
  answers: done,
  run({ params }) {
    if (withSlash(params.path ?? '') === 'token/') throw badRequest('token credential backend cannot be disabled')
    return undefined
  },
})
