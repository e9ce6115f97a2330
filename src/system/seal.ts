import { Type } from 'typebox'
import { badRequest } from '../errors.ts'
import { boolean, text } from '../field.ts'
import { Answer, type Call, route } from '../route.ts'
import type { StatusContext, SystemContext } from './context.ts'
import { sealStatus } from './status.ts'

const nothing = Type.Object({})
const opening = Type.Object({
  key: text({ about: 'The unseal secret that the initialisation printed; never the PIN.' }),
  reset: boolean({ about: 'Discards parts of a secret that were given before; here there are none.' }),
  migrate: boolean({ about: 'Not available: there is one kind of seal.' }),
})

async function unseal({ context, body }: Call<StatusContext, typeof opening>): Promise<Answer> {
  const { status } = context
  if (body.migrate) throw badRequest('migrate is not available: there is one kind of seal')
  if (body.reset) return new Answer({ bare: sealStatus(status) })
  if (!body.key) throw badRequest("'key' must be specified in request body as JSON, or 'reset' set to true")
  return new Answer({ bare: sealStatus(status, await context.unseal(body.key)) })
}

export const unsealRoute = route<StatusContext, typeof opening>({
  method: 'POST',
  path: 'unseal',
  access: 'public',
  audited: false,
  about: 'Opens a sealed node: every worker logs in to the token again.',
  body: opening,
  danger: 'none',
  run: unseal,
})

export const sealRoute = route<SystemContext, typeof nothing>({
  method: 'POST',
  path: 'seal',
  access: 'sudo',
  about:
    'Closes this node: every worker drops its keys and its login, and stays so over restarts until it is unsealed.',
  body: nothing,
  danger: 'custody',
  async run({ context }) {
    await context.seal()
    return undefined
  },
})
