import { type TObject, Type } from 'typebox'
import { after } from '../../../../after.ts'
import { done } from '../../../../answers.ts'
import { absent, badRequest } from '../../../../errors.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { faultOfRole } from '../../issuing/trial.ts'
import { initialSettings, type RoleSettings, roleBody, withFields } from '../../roles/fields.ts'
import { describeRole, roleAnswer } from '../../roles/role.ts'
import { checkSettings } from '../../roles/rules.ts'

const noFields = Type.Object({})

/** Writes the settings that `settings` computes from the body and the existing settings. */
async function write(
  { context, mount, params, body, warn }: Call<PkiContext, TObject>,
  settings: (body: Data, before: RoleSettings | undefined) => RoleSettings,
): Promise<Data> {
  // Before the change: nothing may fail after its COMMIT.
  const authority = await context.authorities.of(mount)
  let warnings: readonly string[] = []
  const role = await context.roles.write(mount, params.name ?? '', (before) => {
    const wanted = settings(body, before)
    warnings = checkSettings(wanted)
    return wanted
  })
  for (const text of warnings) warn(text)
  const fault = faultOfRole(role)
  if (fault !== undefined) warn(`nothing can be issued under this role: ${fault}`)
  const { issuerRef } = role
  if (authority.findIssuer(issuerRef) === undefined) warn(issuerMissing(issuerRef))
  return describeRole(role)
}

const issuerMissing = (reference: string): string =>
  reference === 'default'
    ? 'Issuing Certificate was set to default, but no default issuing certificate (configurable at /config/issuers) is currently set'
    : `Issuing Certificate was set to ${reference} but no issuing certificate currently has that name`

export const writeRole = route<PkiContext, TObject>({
  method: 'POST',
  path: 'roles/:name',
  access: 'token',
  about: 'Creates or replaces a role; absent fields have their defaults.',
  body: roleBody,
  answers: roleAnswer,
  run: (call) => write(call, (body) => withFields(initialSettings, body)),
})

export const patchRole = route<PkiContext, TObject>({
  method: 'PATCH',
  path: 'roles/:name',
  access: 'token',
  about: 'Changes fields of a role; null sets one back to its default.',
  body: roleBody,
  answers: roleAnswer,
  run: (call) =>
    write(call, (body, before) => {
      if (before === undefined) throw badRequest('Unable to fetch role entry to patch')
      return withFields(before, body)
    }),
})

export const readRole = route<PkiContext, typeof noFields>({
  method: 'GET',
  path: 'roles/:name',
  access: 'token',
  about: 'A role with all its fields.',
  body: noFields,
  answers: roleAnswer,
  run: ({ context, mount, params }) =>
    after(context.roles.get(mount, params.name ?? ''), (role) => {
      if (role === undefined) throw absent()
      return describeRole(role)
    }),
})

export const deleteRole = route<PkiContext, typeof noFields>({
  method: 'DELETE',
  path: 'roles/:name',
  access: 'token',
  about: 'Deletes a role; certificates issued under it stay valid.',
  body: noFields,
  answers: done,
  async run({ context, mount, params }) {
    await context.roles.remove(mount, params.name ?? '')
    return undefined
  },
})
