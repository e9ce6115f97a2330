import { Answer } from '../../route.ts'
import { noFields, statusEndpoint } from '../context.ts'

export const readInit = statusEndpoint({
  method: 'GET',
  path: 'init',
  access: 'public',
  audited: false,
  about: 'Whether the cluster was initialised; a server that answers was.',
  body: noFields,
  run: () => new Answer({ bare: { initialized: true } }),
})
