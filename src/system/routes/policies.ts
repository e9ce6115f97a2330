import { Type } from 'typebox'
import { data, done, strings } from '../../answers.ts'
import { absent } from '../../errors.ts'
import { text } from '../../field.ts'
import { endpoint, noFields } from '../context.ts'

const policyFields = Type.Object({
  policy: text({ about: 'The policy in HCL or JSON, plain or in base64.', aliases: ['rules'], longest: 2 ** 20 }),
})

/** Today's path, or the older one, whose answers repeat `data` at the top level and name the text `rules`. */
interface Base {
  readonly path: string
  readonly textField: 'policy' | 'rules'
  readonly older: boolean
}

const current: Base = { path: 'policies/acl', textField: 'policy', older: false }
const older: Base = { path: 'policy', textField: 'rules', older: true }

const common = ({ older }: Base) => ({ access: 'token', inject: older }) as const

const spelledOtherwise = (path: string, compared: string): string =>
  `path "${path}" grants nothing, and denies only requests that are spelled so: write "${compared}", which is how requests are compared`

const list = (base: Base, method: 'LIST' | 'GET') =>
  endpoint({
    ...common(base),
    method,
    path: base.path,
    about: 'The names of all ACL policies.',
    body: noFields,
    answers: data(Type.Object(base.older ? { keys: strings, policies: strings } : { keys: strings })),
    async run({ context }) {
      const keys = await context.policies.names()
      return base.older ? { keys, policies: keys } : { keys }
    },
  })

const read = (base: Base) =>
  endpoint({
    ...common(base),
    method: 'GET',
    path: `${base.path}/:name*`,
    about: 'The text of a policy.',
    body: noFields,
    answers: data(Type.Object({ name: Type.String(), [base.textField]: Type.String() })),
    async run({ context, params }) {
      const policy = await context.policies.read(params.name ?? '')
      if (policy === undefined) throw absent()
      return { name: policy.name, [base.textField]: policy.text }
    },
  })

const write = (base: Base) =>
  endpoint({
    ...common(base),
    method: 'POST',
    path: `${base.path}/:name*`,
    about: 'Creates or replaces a policy; effective everywhere before the answer.',
    body: policyFields,
    answers: done,
    async run({ context, params, body, sentPath, warn }) {
      // Before the change: nothing may fail after its COMMIT.
      const mounts = await context.mounts.list()
      const { name, paths } = await context.policies.write(params.name ?? '', body.policy)
      if (sentPath !== undefined) warn(`policy name was converted to ${name}`)
      for (const { path } of paths) {
        const compared = context.foldings().rule(path, mounts)
        if (compared !== path) warn(spelledOtherwise(path, compared))
      }
      return undefined
    },
  })

const remove = (base: Base) =>
  endpoint({
    ...common(base),
    method: 'DELETE',
    path: `${base.path}/:name*`,
    about: 'Removes a policy; tokens keep its name and lose its rights.',
    body: noFields,
    answers: done,
    async run({ context, params }) {
      await context.policies.remove(params.name ?? '')
      return undefined
    },
  })

export const listPolicies = list(current, 'LIST')
export const readPolicy = read(current)
export const writePolicy = write(current)
export const removePolicy = remove(current)

export const listPoliciesOlder = list(older, 'LIST')
export const getPoliciesOlder = list(older, 'GET')
export const readPolicyOlder = read(older)
export const writePolicyOlder = write(older)
export const removePolicyOlder = remove(older)
