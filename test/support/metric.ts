import type { Client } from './client.ts'

/** The value of a series of the text format; 0 if there is none yet. */
export async function readMetric(client: Client, series: string): Promise<number> {
  const { text } = await client.get('sys/metrics?format=prometheus')
  const line = text.split('\n').find((one) => one.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1) ?? 0)
}
