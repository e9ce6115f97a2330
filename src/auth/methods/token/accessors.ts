import { Type } from 'typebox'
import { keyList } from '../../../answers.ts'
import { integer, text } from '../../../field.ts'
import { endpoint } from './context.ts'

export const listAccessors = endpoint({
  method: 'LIST',
  path: 'accessors',
  access: 'sudo',
  about: 'The accessors of all tokens.',
  body: Type.Object({
    after: text({ about: 'Only accessors after this one.' }),
    limit: integer({ about: 'The most accessors to return; absent or 0 means all.' }),
  }),
  answers: keyList,
  async run({ context, body: { after = '', limit = 0 } }) {
    return { keys: await context.tokens.accessors(after, limit > 0 ? limit : Number.POSITIVE_INFINITY) }
  },
})
