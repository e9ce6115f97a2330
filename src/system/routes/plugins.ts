import { Type } from 'typebox'
import { data } from '../../answers.ts'
import { badRequest } from '../../errors.ts'
import { commaList, text } from '../../field.ts'
import type { MountRecord } from '../../request/mounts/mount.ts'
import type { Call, Data } from '../../route.ts'
import { endpoint, type SystemContext } from '../context.ts'
import { withSlash } from './mounts.ts'

const reloaded = data(Type.Object({ reload_id: Type.String() }))

const scope = text({ about: 'Empty or global, which is the same: every worker of every node.' })
const pluginFields = Type.Object({ scope })
const backendFields = Type.Object({
  plugin: text({ about: 'Reloads every mount of this type.' }),
  mounts: commaList({ about: 'Reloads these mounts.' }),
  scope,
})

async function reloadAny({ context, body, requestId }: Call<SystemContext, typeof backendFields>): Promise<Data> {
  const { plugin, mounts: names = [], scope } = body
  if (!plugin && names.length === 0) throw badRequest('plugin or mounts must be provided')
  if (plugin && names.length > 0) throw badRequest('plugin and mounts cannot be set at the same time')
  const all = await context.mounts.list()
  const chosen = plugin ? ofType(context, all, plugin) : names.map((name) => at(all, withSlash(name)))
  return reload(context, chosen, scope, requestId)
}

async function reload(
  { mounts }: SystemContext,
  chosen: readonly MountRecord[],
  scope: string | undefined,
  requestId: string,
): Promise<Data> {
  if (scope && scope !== 'global') throw badRequest('reload scope must be omitted or "global"')
  // Built-in mounts cache nothing that a reload would read again.
  await mounts.reload(chosen.filter(({ uuid }) => uuid !== ''))
  return { reload_id: requestId }
}

function ofType({ engines }: SystemContext, all: readonly MountRecord[], type: string): readonly MountRecord[] {
  if (!engines.has(type)) throw badRequest(`plugin not found in the catalog: ${type.slice(0, 100)}`)
  return all.filter((mount) => mount.type === type)
}

function at(all: readonly MountRecord[], path: string): MountRecord {
  const found = all.find((mount) => mount.path === path)
  if (found === undefined) throw badRequest(`cannot fetch mount entry on "${path}"`, { style: 'list' })
  return found
}

export const reloadBackend = endpoint({
  method: 'POST',
  path: 'plugins/reload/backend',
  access: 'token',
  about: 'Has engines reload their caches; done on every worker of every node before the answer.',
  body: backendFields,
  answers: reloaded,
  run: reloadAny,
})

/** The CLI's request since Vault 1.16. */
export const reloadPlugin = endpoint({
  method: 'POST',
  path: 'plugins/reload/:type/:name',
  captures: { type: /^(?:auth|database|secret|unknown)$/ },
  access: 'token',
  about: 'Has every mount of one engine reload its caches.',
  body: pluginFields,
  answers: reloaded,
  async run({ context, params, body, requestId }) {
    const chosen = ofType(context, await context.mounts.list(), params.name ?? '')
    return reload(context, chosen, body.scope, requestId)
  },
})
