import { Type } from 'typebox'
import { data, timestamp } from '../../../answers.ts'
import { endpoint, noFields } from '../../context.ts'

export const readKeyStatus = endpoint({
  method: 'GET',
  path: 'key-status',
  access: 'token',
  about: 'Which KEK wraps the server’s own keys: the number of those there were, and when it was made.',
  body: noFields,
  inject: true,
  answers: data(Type.Object({ term: Type.Integer(), install_time: timestamp })),
  async run({ context }) {
    const { term, installedAt } = await context.keyStatus()
    return { term, install_time: new Date(installedAt).toISOString() }
  },
})
