import { Type } from 'typebox'
import { data, keyList, strings } from '../../../answers.ts'
import { absent, badRequest } from '../../../errors.ts'
import type { Data } from '../../../route.ts'
import { endpoint, noFields, type SystemContext } from '../../context.ts'
import { apiVersion } from '../../version.ts'

const shownPlugin = {
  name: Type.String(),
  version: Type.String(),
  builtin: Type.Boolean(),
  deprecation_status: Type.String(),
}

const catalog = Type.Object({
  auth: Type.Optional(strings),
  database: Type.Optional(strings),
  secret: Type.Optional(strings),
  detailed: Type.Array(Type.Object({ type: Type.String(), ...shownPlugin })),
})

const plugin = Type.Object({
  ...shownPlugin,
  args: Type.Null(),
  command: Type.String(),
  sha256: Type.String(),
})

/** The reference's notation for the version of a built-in plugin. */
const version = `v${apiVersion}+builtin.vault`
const types: readonly string[] = ['auth', 'database', 'secret']

/** Everything is built in: the token method, and the engines as secrets plugins. @throws ApiError 400 */
function namesOf({ engines }: SystemContext, type: string): readonly string[] {
  if (!types.includes(type)) throw badRequest(`"${type.slice(0, 100)}" is not a supported plugin type`)
  return type === 'secret' ? [...engines.keys()].sort() : type === 'auth' ? ['token'] : []
}

const described = (type: string, name: string): Data => ({
  ...{ type, name, version, builtin: true, deprecation_status: 'supported' },
})

export const readCatalog = endpoint({
  method: 'GET',
  path: 'plugins/catalog',
  access: 'token',
  about: 'The engines and auth methods of this server, by type.',
  body: noFields,
  answers: data(catalog),
  run({ context }): Data {
    const byType = types.map((type) => [type, namesOf(context, type)] as const).filter(([, names]) => names.length > 0)
    const detailed = byType.flatMap(([type, names]) => names.map((name) => described(type, name)))
    return { ...Object.fromEntries(byType), detailed }
  },
})

export const listCatalog = endpoint({
  method: 'LIST',
  path: 'plugins/catalog/:type',
  access: 'sudo',
  about: 'The names of one type: auth, database or secret.',
  body: noFields,
  answers: keyList,
  run: ({ context, params }) => ({ keys: namesOf(context, params.type ?? '') }),
})

export const readPlugin = endpoint({
  method: 'GET',
  path: 'plugins/catalog/:type/:name',
  access: 'sudo',
  about: 'One engine or auth method; all are built in.',
  body: noFields,
  answers: data(plugin),
  run({ context, params: { type = '', name = '' } }): Data {
    if (!namesOf(context, type).includes(name)) throw absent()
    const { type: _, ...shown } = described(type, name)
    return { ...shown, args: null, command: '', sha256: '' }
  },
})
