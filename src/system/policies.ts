import { Type } from 'typebox'
import { absent } from '../errors.ts'
import { text } from '../field.ts'
import { type Call, type Outcome, route } from '../route.ts'
import type { SystemContext } from './context.ts'

const nothing = Type.Object({})
const written = Type.Object({
  policy: text({ about: 'The policy in HCL or JSON, plain or in base64.', aliases: ['rules'] }),
})

type Asked = Call<SystemContext, typeof nothing>

async function write({ context, params, body, warn }: Call<SystemContext, typeof written>): Promise<Outcome> {
  const { name = '' } = params
  const stored = await context.policies.write(name, body.policy)
  if (stored !== name) warn(`policy name was converted to ${stored}`)
  return undefined
}

async function remove({ context, params }: Asked): Promise<Outcome> {
  await context.policies.remove(params.name ?? '')
  return undefined
}

/** Today's path, and the old one, whose answers say more at the top level and have another name for the text. */
interface Form {
  readonly path: string
  readonly textField: 'policy' | 'rules'
  readonly old: boolean
}

function policyRoutesAt({ path, textField, old }: Form) {
  const common = { access: 'token', inject: old, captures: { name: /^[^/]+$/ } } as const
  const listBy = (method: 'LIST' | 'GET') =>
    route<SystemContext, typeof nothing>({
      ...common,
      method,
      path,
      about: 'The names of all ACL policies.',
      body: nothing,
      danger: 'none',
      async run({ context }) {
        const keys = await context.policies.names()
        return old ? { keys, policies: keys } : { keys }
      },
    })
  return [
    listBy('LIST'),
    ...(old ? [listBy('GET')] : []),
    route<SystemContext, typeof nothing>({
      ...common,
      method: 'GET',
      path: `${path}/:name`,
      about: 'The text of a policy.',
      body: nothing,
      danger: 'none',
      async run({ context, params }) {
        const found = await context.policies.read(params.name ?? '')
        if (found === undefined) throw absent()
        return { name: found.name, [textField]: found.text }
      },
    }),
    route<SystemContext, typeof written>({
      ...common,
      method: 'POST',
      path: `${path}/:name`,
      about: 'Creates or replaces a policy; effective everywhere before the answer.',
      body: written,
      danger: 'custody',
      run: write,
    }),
    route<SystemContext, typeof nothing>({
      ...common,
      method: 'DELETE',
      path: `${path}/:name`,
      about: 'Removes a policy; tokens keep its name and lose its rights.',
      body: nothing,
      danger: 'destructive',
      run: remove,
    }),
  ]
}

export const policyRoutes = [
  ...policyRoutesAt({ path: 'policies/acl', textField: 'policy', old: false }),
  ...policyRoutesAt({ path: 'policy', textField: 'rules', old: true }),
]
