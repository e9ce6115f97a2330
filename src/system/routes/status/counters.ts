import { Type } from 'typebox'
import { data } from '../../../answers.ts'
import { ApiError, badRequest } from '../../../errors.ts'
import { endpoint, noFields } from '../../context.ts'

const counted = (name: string) =>
  Type.Object({ counters: Type.Object({ [name]: Type.Object({ total: Type.Integer() }) }) })

const countersConfig = Type.Object({
  enabled: Type.String(),
  queries_available: Type.Boolean(),
  default_report_months: Type.Integer(),
  retention_months: Type.Integer(),
  reporting_enabled: Type.Boolean(),
  billing_start_timestamp: Type.Null(),
})

export const countTokens = endpoint({
  method: 'GET',
  path: 'internal/counters/tokens',
  access: 'token',
  about: 'The number of tokens in the cluster.',
  body: noFields,
  answers: data(counted('service_tokens')),
  run: async ({ context }) => ({ counters: { service_tokens: { total: await context.tokens.count() } } }),
})

export const countEntities = endpoint({
  method: 'GET',
  path: 'internal/counters/entities',
  access: 'token',
  about: 'The number of entities: there are none.',
  body: noFields,
  answers: data(counted('entities')),
  run: () => ({ counters: { entities: { total: 0 } } }),
})

/** Dashboards still request it; the reference answers the same. */
export const countRequests = endpoint({
  method: 'GET',
  path: 'internal/counters/requests',
  access: 'token',
  about: 'Removed from the API: sys/metrics counts requests.',
  body: noFields,
  answers: [],
  run() {
    throw new ApiError(404, 'The functionality has been removed on this path')
  },
})

/** The reference's settings, with its counting of clients off. */
export const readCountersConfig = endpoint({
  method: 'GET',
  path: 'internal/counters/config',
  access: 'token',
  about: 'How clients are counted: not at all.',
  body: noFields,
  answers: data(countersConfig),
  run: () => ({
    enabled: 'disable',
    queries_available: false,
    default_report_months: 12,
    retention_months: 0,
    reporting_enabled: false,
    billing_start_timestamp: null,
  }),
})

/** A zero would be taken for a count. */
const countClients = (path: string) =>
  endpoint({
    method: 'GET',
    path: `internal/counters/${path}`,
    access: 'token',
    about: 'Refused: clients are not counted.',
    body: noFields,
    answers: [],
    run() {
      throw badRequest(
        'clients are not counted on this server: no license asks for it. sys/internal/counters/tokens counts tokens, sys/metrics requests',
      )
    },
  })

export const countActivity = countClients('activity')
export const countMonthlyActivity = countClients('activity/monthly')
export const exportActivity = countClients('activity/export')
