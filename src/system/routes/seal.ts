import { done } from '../../answers.ts'
import { endpoint, noFields } from '../context.ts'

export const sealNode = endpoint({
  method: 'POST',
  path: 'seal',
  access: 'sudo',
  about:
    'Closes this node: every worker drops its keys and its login, and stays so over restarts until it is unsealed.',
  body: noFields,
  answers: done,
  async run({ context }) {
    await context.seal()
    return undefined
  },
})
