import { Type } from 'typebox'
import { anyObject, mapOf } from '../answers.ts'
import type { Series, Snapshot } from './snapshot.ts'
import { recentOf } from './timing.ts'

const series = { Name: Type.String(), Labels: mapOf(Type.String()) }
const number = Type.Number()

/** The members of metricsJson. */
export const metricsAnswer = Type.Object({
  Timestamp: Type.String(),
  Gauges: Type.Array(Type.Object({ ...series, Value: number })),
  Points: Type.Array(anyObject),
  Counters: Type.Array(Type.Object({ ...series, Count: number, Sum: number })),
  Samples: Type.Array(
    Type.Object({
      ...series,
      Count: Type.Integer(),
      ...{ Rate: number, Sum: number, Min: number, Max: number, Mean: number, Stddev: number },
    }),
  ),
})

/** Seconds that a timing's recent part covers, on average. */
const recentSeconds = 45

/**
 * The reference's JSON form. Counters count since the start; samples are the timings of the last 30 to 60 seconds, in
 * milliseconds.
 * @param now milliseconds since the Unix epoch
 */
export const metricsJson = (snapshot: Snapshot, now: number): Readonly<Record<string, unknown>> => ({
  Timestamp: `${new Date(now).toISOString().slice(0, 19).replace('T', ' ')} +0000 UTC`,
  Gauges: entries(snapshot, ({ name, labels, ...series }) =>
    series.kind === 'gauge' ? { Name: name, Value: series.value, Labels: labels } : undefined,
  ),
  Points: [],
  Counters: entries(snapshot, ({ name, labels, ...series }) =>
    series.kind === 'counter' ? { Name: name, Count: series.value, Sum: series.value, Labels: labels } : undefined,
  ),
  Samples: entries(snapshot, ({ name, labels, ...series }) => {
    if (series.kind !== 'timing') return undefined
    const { count, sum, minimum, maximum, deviation } = recentOf(series.timing)
    return {
      Name: name,
      Count: count,
      Rate: sum / recentSeconds,
      Sum: sum,
      Min: minimum,
      Max: maximum,
      Mean: count === 0 ? 0 : sum / count,
      Stddev: deviation,
      Labels: labels,
    }
  }),
})

const entries = (snapshot: Snapshot, show: (series: Series) => object | undefined): object[] =>
  snapshot.flatMap((series) => show(series) ?? [])
