import { Type } from 'typebox'
import { data, done, strings } from '../../../answers.ts'
import { commaList } from '../../../field.ts'
import { corsName, corsOf, readCors } from '../../../settings/cors.ts'
import { endpoint, noFields } from '../../context.ts'

const corsConfig = Type.Object({
  allowed_headers: Type.Optional(strings),
  allowed_origins: Type.Optional(strings),
  enabled: Type.Boolean(),
})

const corsFields = Type.Object({
  allowed_origins: commaList({ about: 'Origins that browsers may ask from, or * alone for all.' }),
  allowed_headers: commaList({ about: 'Headers that they may send beyond those of Vault’s clients.' }),
})

const common = { path: 'config/cors', access: 'sudo' } as const

export const readCorsConfig = endpoint({
  ...common,
  method: 'GET',
  about: 'Which origins browsers may ask from.',
  body: noFields,
  inject: true,
  answers: data(corsConfig),
  async run({ context }) {
    const cors = corsOf(await context.settings.of('cors'))
    if (cors === undefined) return { enabled: false }
    return { allowed_headers: cors.headers, allowed_origins: cors.origins, enabled: true }
  },
})

export const writeCorsConfig = endpoint({
  ...common,
  method: 'POST',
  about: 'Lets browsers ask from other origins; in force everywhere before the answer.',
  body: corsFields,
  answers: done,
  async run({ context, body }) {
    const value = readCors(body.allowed_origins ?? [], body.allowed_headers ?? [])
    await context.settings.set('cors', corsName, value)
    return undefined
  },
})

export const removeCorsConfig = endpoint({
  ...common,
  method: 'DELETE',
  about: 'Lets browsers ask from no other origin.',
  body: noFields,
  answers: done,
  async run({ context }) {
    await context.settings.set('cors', corsName, undefined)
    return undefined
  },
})
