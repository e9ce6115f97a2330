import { noData } from '../../../answers.ts'
import { tidyAnswer } from '../../../auth/methods/token/tidy.ts'
import { endpoint, noFields } from '../../context.ts'

export const tidyLeases = endpoint({
  method: 'POST',
  path: 'leases/tidy',
  access: 'token',
  about: 'Revokes leases whose token is gone, in the background.',
  body: noFields,
  answers: noData(202),
  run: async ({ context, warn }) => tidyAnswer(await context.start(context.leases.tidying), warn),
})
