import { Type } from 'typebox'
import { bare } from '../../answers.ts'
import { badRequest } from '../../errors.ts'
import { Answer } from '../../route.ts'
import { noFields, statusEndpoint } from '../context.ts'

export const readInit = statusEndpoint({
  method: 'GET',
  path: 'init',
  access: 'public',
  audited: false,
  about: 'Whether the cluster was initialised; a server that answers was.',
  body: noFields,
  answers: bare(Type.Object({ initialized: Type.Boolean() })),
  run: () => new Answer({ bare: { initialized: true } }),
})

export const initialise = statusEndpoint({
  method: 'POST',
  path: 'init',
  access: 'public',
  about: 'Refused: the command `strongroom init` makes a cluster, beside its token.',
  body: noFields,
  answers: [],
  run() {
    throw badRequest('Vault is already initialized')
  },
})
