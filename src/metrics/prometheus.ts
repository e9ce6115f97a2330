import { AggregatorRegistry } from 'prom-client'
import type { Series, Snapshot } from './snapshot.ts'
import { quantile } from './timing.ts'

const quantiles = [0.5, 0.9, 0.99]

/** Dots, dashes and slashes of names become underscores, as in the reference. */
const flat = (name: string): string => name.replace(/[^A-Za-z0-9_]/g, '_')

/** Prometheus's text format: counters, gauges, and timings as summaries in milliseconds. */
export async function prometheus(snapshot: Snapshot): Promise<{ type: string; body: string }> {
  const families = Map.groupBy(snapshot, ({ name }) => flat(name))
  const metrics = [...families].map(([name, series]) => ({
    name,
    help: series[0]?.help ?? '',
    type: series[0]?.kind === 'timing' ? 'summary' : series[0]?.kind,
    values: series.flatMap((one) => valuesOf(name, one)),
    aggregator: 'sum',
  }))
  // Makes a registry from plain data, as prom-client requires.
  const registry = AggregatorRegistry.aggregate([metrics])
  return { type: registry.contentType, body: await registry.metrics() }
}

function valuesOf(name: string, series: Series): object[] {
  const { labels } = series
  if (series.kind !== 'timing') return [{ metricName: name, labels, value: series.value }]
  const { timing } = series
  return [
    ...quantiles.map((share) => ({
      metricName: name,
      labels: { ...labels, quantile: String(share) },
      value: quantile(timing, share),
    })),
    { metricName: `${name}_sum`, labels, value: timing.sumMilliseconds },
    { metricName: `${name}_count`, labels, value: timing.count },
  ]
}
