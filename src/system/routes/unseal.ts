import { Type } from 'typebox'
import { bare } from '../../answers.ts'
import { badRequest } from '../../errors.ts'
import { boolean, text } from '../../field.ts'
import { Answer } from '../../route.ts'
import { statusEndpoint } from '../context.ts'
import { sealStatus, sealStatusAnswer } from './sealstatus.ts'

export const unsealNode = statusEndpoint({
  method: 'POST',
  path: 'unseal',
  access: 'public',
  audited: false,
  about: 'Opens a sealed node: every worker logs in to the token again.',
  body: Type.Object({
    key: text({ about: 'The unseal secret that the initialisation printed; never the PIN.' }),
    reset: boolean({ about: 'Discards parts of a secret that were given before; here there are none.' }),
    migrate: boolean({ about: 'Not available: there is one kind of seal.' }),
  }),
  answers: bare(sealStatusAnswer),
  async run({ context, body }) {
    const { status } = context
    if (body.migrate) throw badRequest('migrate is not available: there is one kind of seal')
    if (body.reset) return new Answer({ bare: sealStatus(status) })
    // A secret out of a file may end with the file's last newline.
    const secret = body.key?.trim()
    if (!secret) throw badRequest("'key' must be specified in request body as JSON, or 'reset' set to true")
    return new Answer({ bare: sealStatus(status, await context.unseal(secret)) })
  },
})
