import { Type } from 'typebox'
import { bare, bytes } from '../../answers.ts'
import { text } from '../../field.ts'
import { metricsAnswer, metricsJson } from '../../metrics/json.ts'
import { prometheus } from '../../metrics/prometheus.ts'
import { Answer } from '../../route.ts'
import { endpoint } from '../context.ts'

const query = Type.Object({
  format: text({ about: 'prometheus for its text format; JSON when absent.' }),
})

/** Media types that Prometheus sends in Accept. */
const wantsText = /application\/openmetrics-text|text\/plain|prometheus/

const plain = (status: number, body: string) => new Answer({ status, raw: { type: 'text/plain', body } })

export const readMetrics = endpoint({
  method: 'GET',
  path: 'metrics',
  access: 'token',
  about: 'The metrics of this node, over all its workers.',
  body: query,
  answers: [...bare(metricsAnswer), ...bytes('text/plain')],
  async run({ context, body, accept }) {
    const format = body.format || (wantsText.test(accept) ? 'prometheus' : '')
    if (format !== '' && format !== 'prometheus') return plain(400, `metric response format "${format}" unknown`)
    const snapshot = await context.metrics()
    if (format === '') return new Answer({ bare: metricsJson(snapshot, context.status.clock.wall()) })
    return new Answer({ raw: await prometheus(snapshot) })
  },
})
