import { Type } from 'typebox'
import { data } from '../../../answers.ts'
import { endpoint, noFields } from '../../context.ts'

const modeOnly = Type.Object({ mode: Type.String() })

const disabled = { mode: 'disabled' }

/** Nodes share one database; nothing is replicated between clusters. */
export const readReplication = endpoint({
  method: 'GET',
  path: 'replication/status',
  access: 'public',
  about: 'Whether clusters are replicated: never.',
  body: noFields,
  answers: data(Type.Object({ mode: Type.String(), dr: modeOnly, performance: modeOnly })),
  run: () => ({ ...disabled, dr: disabled, performance: disabled }),
})

const statusOf = (kind: 'dr' | 'performance') =>
  endpoint({
    ...readReplication,
    path: `replication/${kind}/status`,
    answers: data(modeOnly),
    run: () => disabled,
  })

export const readDisasterRecovery = statusOf('dr')
export const readPerformance = statusOf('performance')
