import { Type } from 'typebox'
import { integer, text } from '../../../field.ts'
import { endpoint } from './context.ts'

export const listAccessors = endpoint({
  method: 'LIST',
  path: 'accessors',
  access: 'sudo',
  about: 'The accessors of all tokens.',
  body: Type.Object({
    after: text({ about: 'Accessors beyond this one only.' }),
    limit: integer({ about: 'At most so many; absent or 0 is all.' }),
  }),
  async run({ context, body: { after = '', limit = 0 } }) {
    return { keys: await context.tokens.accessors(after, limit > 0 ? limit : Number.POSITIVE_INFINITY) }
  },
})
