import { Type } from 'typebox'
import { bare, keyList, strings } from '../../../answers.ts'
import { ApiError } from '../../../errors.ts'
import { Answer } from '../../../route.ts'
import { endpoint, noFields } from '../../context.ts'

export const listFeatureFlags = endpoint({
  method: 'GET',
  path: 'internal/ui/feature-flags',
  access: 'public',
  about: 'Features of a hosted installation that are switched on: none.',
  body: noFields,
  answers: bare(Type.Object({ feature_flags: strings })),
  run: () => new Answer({ bare: { feature_flags: [] } }),
})

export const listUiNamespaces = endpoint({
  method: 'GET',
  path: 'internal/ui/namespaces',
  access: 'public',
  about: 'The namespaces that the token may use: the root namespace, whose name is empty.',
  body: noFields,
  answers: keyList,
  run({ caller }) {
    if (caller === undefined) throw new ApiError(403, 'permission denied')
    return { keys: [''] }
  },
})
