import { Type } from 'typebox'
import { data, done, mapOf } from '../../../answers.ts'
import { badRequest } from '../../../errors.ts'
import { boolean } from '../../../field.ts'
import { auditedHeaders, checkAuditedHeader } from '../../../settings/auditedheaders.ts'
import { endpoint, noFields, type SystemContext } from '../../context.ts'

const audited = Type.Object({ hmac: Type.Boolean() })

const headerFields = Type.Object({
  hmac: boolean({ about: 'Whether audit lines show its HMAC; else they show it in clear.' }),
})

const common = { access: 'sudo', captures: { header: /^[^/]+$/ } } as const
const kind = 'audited-header'
const list = async ({ settings }: SystemContext) => auditedHeaders(await settings.of(kind))

export const listAuditedHeaders = endpoint({
  ...common,
  method: 'GET',
  path: 'config/auditing/request-headers',
  about: 'The headers of requests that audit lines show.',
  body: noFields,
  inject: true,
  answers: data(Type.Object({ headers: mapOf(audited) })),
  async run({ context }) {
    return { headers: Object.fromEntries((await list(context)).map(({ name, hmac }) => [name, { hmac }])) }
  },
})

export const readAuditedHeader = endpoint({
  ...common,
  method: 'GET',
  path: 'config/auditing/request-headers/:header',
  about: 'Whether audit lines show a header, and how; under the name as it was sent.',
  body: noFields,
  inject: true,
  answers: data(mapOf(audited)),
  async run({ context, params, sentPath }) {
    const found = (await list(context)).find(({ name }) => name === params.header)
    if (found === undefined) throw badRequest('Could not find header in config')
    // Terraform looks for the name as its user wrote it, and ends with a panic where it is not there.
    return { [sentPath?.split('/').at(-1) ?? found.name]: { hmac: found.hmac } }
  },
})

export const writeAuditedHeader = endpoint({
  ...common,
  method: 'POST',
  path: 'config/auditing/request-headers/:header',
  about: 'Has audit lines show a header of requests; in force everywhere before the answer.',
  body: headerFields,
  answers: done,
  async run({ context, params, body }) {
    const { header = '' } = params
    await context.settings.change(kind, header, (set) => {
      checkAuditedHeader(header, auditedHeaders(set.get(kind) ?? new Map()))
      return { hmac: body.hmac === true }
    })
    return undefined
  },
})

export const removeAuditedHeader = endpoint({
  ...common,
  method: 'DELETE',
  path: 'config/auditing/request-headers/:header',
  about: 'Has audit lines no longer show a header.',
  body: noFields,
  answers: done,
  async run({ context, params }) {
    await context.settings.set(kind, params.header ?? '', undefined)
    return undefined
  },
})
