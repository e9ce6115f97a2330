import { Type } from 'typebox'
import { data, done, mapOf } from '../../answers.ts'
import { badRequest } from '../../errors.ts'
import { map, text } from '../../field.ts'
import type { MountRecord } from '../../request/mounts/mount.ts'
import { effective, tunable, tuningAnswer } from '../../request/mounts/tuning.ts'
import type { Data } from '../../route.ts'
import { endpoint, noFields } from '../context.ts'
import { isSecret, withSlash } from './mounts.ts'

const tuning = Type.Object({
  ...tuningAnswer,
  description: Type.String(),
  options: Type.Optional(mapOf(Type.String())),
  token_type: Type.Optional(Type.String()),
})

const tuneFields = Type.Object({
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

/** The mounts below sys/mounts and those below sys/auth, whose paths begin with `auth/` themselves. */
interface Base {
  readonly path: string
  readonly prefix: string
  readonly access: 'token' | 'sudo'
}

const secretMounts: Base = { path: 'mounts/:path*/tune', prefix: '', access: 'token' }
const authMounts: Base = { path: 'auth/:path*/tune', prefix: 'auth/', access: 'sudo' }

const readTuning = ({ path, prefix, access }: Base) =>
  endpoint({
    method: 'GET',
    path,
    access,
    about: 'The settings of a mount, with the TTLs that hold.',
    body: noFields,
    inject: true,
    answers: data(tuning),
    async run({ context, params }) {
      const wanted = withSlash(`${prefix}${params.path}`)
      const mount = await context.mounts.at(wanted)
      if (mount === undefined) throw badRequest(`cannot fetch sysview for path "${wanted}"`)
      return describe(mount)
    },
  })

const tune = ({ path, prefix, access }: Base) =>
  endpoint({
    method: 'POST',
    path,
    access,
    about: 'Changes the settings of a mount; settings not named stay.',
    body: tuneFields,
    answers: done,
    async run({ context, params, body }) {
      const { plugin_version: version, description, options, ...config } = body
      if (version) throw badRequest('plugin_version is not available: engines are built in')
      await context.mounts.tune(`${prefix}${params.path}`, { description, options, config })
      return undefined
    },
  })

export const readMountTuning = readTuning(secretMounts)
export const tuneMount = tune(secretMounts)
export const readAuthTuning = readTuning(authMounts)
export const tuneAuthMethod = tune(authMounts)
