import { Type } from 'typebox'
import { text } from '../field.ts'
import { metricsJson } from '../metrics/json.ts'
import { prometheus } from '../metrics/prometheus.ts'
import { Answer, route } from '../route.ts'
import type { SystemContext } from './context.ts'

const query = Type.Object({
  format: text({ about: 'prometheus for its text format; JSON when absent.' }),
})

/** Media types by which Prometheus says what it wants. */
const wantsText = /application\/openmetrics-text|text\/plain|prometheus/

const plain = (status: number, body: string) => new Answer({ status, raw: { type: 'text/plain', body } })

export const metricsRoute = route<SystemContext, typeof query>({
  method: 'GET',
  path: 'metrics',
  access: 'token',
  about: 'What this node measures, over all its workers.',
  body: query,
  danger: 'none',
  async run({ context, body, accept }) {
    const format = body.format || (wantsText.test(accept) ? 'prometheus' : '')
    if (format !== '' && format !== 'prometheus') return plain(400, `metric response format "${format}" unknown`)
    const snapshot = await context.metrics()
    if (format === '') return new Answer({ bare: metricsJson(snapshot, context.status.clock.wall()) })
    return new Answer({ raw: await prometheus(snapshot) })
  },
})
