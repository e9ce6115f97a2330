type Body = Readonly<Record<string, unknown>>
type At = (route: string, values?: Body, body?: Body) => Promise<unknown>

const refused = ['requests', 'activity', 'activity/monthly', 'activity/export']

/** The server does not count these. */
export const refusedCounters = refused.map((path) => `GET sys/internal/counters/${path}`)

/** Requests of dashboards to sys/, and its tools. */
export async function tellPolled(at: At): Promise<void> {
  for (const path of ['replication/status', 'replication/dr/status', 'replication/performance/status'])
    await at(`GET ${path}`)
  for (const path of ['key-status', 'license/status', 'plugins/catalog', 'in-flight-req']) await at(`GET ${path}`)
  await at('POST init')
  for (const path of ['internal/ui/feature-flags', 'internal/ui/namespaces']) await at(`GET ${path}`)
  for (const path of ['tokens', 'entities', 'config', ...refused]) await at(`GET internal/counters/${path}`)
  const plugin = { type: 'secret', name: 'transit' }
  await at('LIST plugins/catalog/:type', plugin)
  await at('GET plugins/catalog/:type/:name', plugin)
  await at('POST tools/hash', {}, { input: '' })
  await at('POST tools/hash/:algorithm', { algorithm: 'sha2-256' }, { input: '' })
  await at('POST tools/random')
  await at('POST tools/random/:first', { first: 'platform' })
  await at('POST tools/random/:source/:bytes', { source: 'seal', bytes: 8 })
}
