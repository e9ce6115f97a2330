import { Type } from 'typebox'
import { data, mapOf, strings } from '../../answers.ts'
import { capabilities } from '../../auth/acl/decide.ts'
import { TokenCaller } from '../../auth/caller.ts'
import { tokenOfAccessor } from '../../auth/methods/token/context.ts'
import { badRequest } from '../../errors.ts'
import { commaList, text } from '../../field.ts'
import { withMount } from '../../request/path.ts'
import type { Data } from '../../route.ts'
import { endpoint, type SystemContext } from '../context.ts'

const paths = {
  paths: commaList({ about: 'The paths asked about.' }),
  path: commaList({ about: 'Older name of paths.' }),
}
const self = Type.Object(paths)
const ofToken = Type.Object({ token: text({ about: 'The token asked about.' }), ...paths })
const ofAccessor = Type.Object({ accessor: text({ about: 'Accessor of the token asked about.' }), ...paths })

/** Each path is a look-up in every rule of the token: this bounds the cost of one request. */
const mostPaths = 10_000

interface PathFields {
  readonly paths?: readonly string[]
  readonly path?: readonly string[]
}

/** The capabilities that these policies grant on each path, sorted; for a single path also as `capabilities`. */
async function describe(context: SystemContext, policies: readonly string[], fields: PathFields): Promise<Data> {
  const wanted = fields.paths?.length ? fields.paths : (fields.path ?? [])
  if (wanted.length === 0) throw badRequest('paths must be supplied')
  if (wanted.length > mostPaths) throw badRequest(`at most ${mostPaths} paths may be asked about at once`)
  const acl = await context.policies.acl(policies)
  const foldings = context.foldings()
  const found: [string, readonly string[]][] = []
  for (const path of wanted) {
    const sent = withMount(path.replace(/^\/+/, ''))
    const mount = await context.mounts.find(sent)
    found.push([path, capabilities(acl, foldings.path(sent, mount), sent)])
  }
  return Object.fromEntries(found.length === 1 ? [['capabilities', found[0]?.[1]], ...found] : found)
}

const common = { method: 'POST', access: 'token', inject: true, answers: data(mapOf(strings)) } as const

export const readOwnCapabilities = endpoint({
  ...common,
  path: 'capabilities-self',
  about: 'What the caller may do on some paths.',
  body: self,
  async run({ context, caller, body }) {
    if (caller === undefined) throw new TypeError('a route for tokens ran without a caller')
    return describe(context, caller.policies, body)
  },
})

export const readCapabilities = endpoint({
  ...common,
  path: 'capabilities',
  about: 'What a token may do on some paths.',
  body: ofToken,
  async run({ context, caller, body }) {
    if (!body.token) throw badRequest('no token found')
    // The caller's own token may be on its last use, which this request has taken.
    const own = caller !== undefined && TokenCaller.credentialOf(caller) === body.token
    const token = own ? caller : await context.tokens.lookup(body.token)
    if (token === undefined) throw badRequest('invalid token', { style: 'list' })
    return describe(context, token.policies, body)
  },
})

export const readAccessorCapabilities = endpoint({
  ...common,
  path: 'capabilities-accessor',
  about: 'What the token of an accessor may do on some paths.',
  body: ofAccessor,
  async run({ context, body }) {
    const token = await tokenOfAccessor(context.tokens, body.accessor)
    return describe(context, token.policies, body)
  },
})
