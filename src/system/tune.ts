import { Type } from 'typebox'
import { badRequest } from '../errors.ts'
import { map, text } from '../field.ts'
import type { MountRecord } from '../request/mounts/mount.ts'
import { effective, tunable } from '../request/mounts/tuning.ts'
import { type Call, type Data, type Outcome, route } from '../route.ts'
import type { SystemContext } from './context.ts'
import { isSecret, withSlash } from './mounts.ts'

const nothing = Type.Object({})
const tuning = Type.Object({
  ...tunable,
  description: text({ about: 'For people.' }),
  options: map({ about: 'Options of the engine, added to those it has; an empty value takes one away.' }),
  plugin_version: text({ about: 'Not available; empty is accepted.' }),
})

function describe(mount: MountRecord): Data {
  return {
    ...effective(mount.config),
    description: mount.description,
    ...(mount.options === null ? {} : { options: mount.options }),
    ...(isSecret(mount) ? {} : { token_type: 'default-service' }),
  }
}

async function change(call: Call<SystemContext, typeof tuning>, path: string): Promise<Outcome> {
  const { plugin_version: version, description, options, ...config } = call.body
  if (version) throw badRequest('plugin_version is not available: engines are built in')
  await call.context.mounts.tune(path, { description, options, config })
  return undefined
}

/** @param prefix what stands before the path in the mount's own: `auth/` under sys/auth */
const tuneRoutesAt = (path: string, prefix: string, access: 'token' | 'sudo') => [
  route<SystemContext, typeof nothing>({
    method: 'GET',
    path,
    access,
    about: 'The settings of a mount, with the TTLs that hold.',
    body: nothing,
    inject: true,
    danger: 'none',
    async run({ context, params }) {
      const wanted = withSlash(`${prefix}${params.path}`)
      const mount = (await context.mounts.list()).find((one) => one.path === wanted)
      if (mount === undefined) throw badRequest(`cannot fetch sysview for path "${wanted}"`)
      return describe(mount)
    },
  }),
  route<SystemContext, typeof tuning>({
    method: 'POST',
    path,
    access,
    about: 'Changes the settings of a mount; what is not named stays.',
    body: tuning,
    danger: 'custody',
    run: (call) => change(call, `${prefix}${call.params.path}`),
  }),
]

export const tuneRoutes = [
  ...tuneRoutesAt('mounts/:path*/tune', '', 'token'),
  ...tuneRoutesAt('auth/:path*/tune', 'auth/', 'sudo'),
]
