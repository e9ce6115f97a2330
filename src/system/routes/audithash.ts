import { Type } from 'typebox'
import { data } from '../../answers.ts'
import { badRequest } from '../../errors.ts'
import { text, wholeBody } from '../../field.ts'
import { endpoint } from '../context.ts'

export const hashForAudit = endpoint({
  method: 'POST',
  path: 'audit-hash/:path*',
  access: 'token',
  about: 'The form of a text in the lines of an audit device.',
  body: Type.Object({ input: text({ about: 'The text to look for in an audit file.', longest: wholeBody }) }),
  inject: true,
  answers: data(Type.Object({ hash: Type.String() })),
  async run({ context, params, body }) {
    if (!body.input) throw badRequest('the "input" parameter is empty')
    return { hash: await context.audit.hash(params.path ?? '', body.input) }
  },
})
