import { expect, test, vi } from 'vitest'
import { unavailable } from '../../src/errors.ts'
import { metricsJson } from '../../src/metrics/json.ts'
import { prometheus } from '../../src/metrics/prometheus.ts'
import { merge, totals } from '../../src/metrics/snapshot.ts'
import { Metrics } from '../../src/metrics.ts'

/** A worker that has answered some requests. */
function worker(requests: number, inFlight: number): Metrics {
  const metrics = new Metrics()
  const timing = metrics.timing('vault.route.update.transit-', 'Requests.')
  for (let i = 0; i < requests; i++) timing.observe(2)
  metrics.counter('strongroom.hsm.operations', 'Calls.', { operation: 'sign' }).value += requests
  metrics.gauge('vault.core.in_flight_requests', 'Now.', () => inFlight)
  return metrics
}
const own = (line: string) => !line.includes('strongroom_worker_')

test('the text format has the reference names, and the sum of all workers', async () => {
  const { type, body } = await prometheus(merge([worker(2, 1).snapshot(), worker(3, 4).snapshot()]))
  expect(type).toMatch(/^text\/plain; version=0\.0\.4/)
  expect(body.split('\n').filter((line) => line !== '' && own(line))).toEqual([
    '# HELP strongroom_hsm_operations Calls.',
    '# TYPE strongroom_hsm_operations counter',
    'strongroom_hsm_operations{operation="sign"} 5',
    '# HELP vault_core_in_flight_requests Now.',
    '# TYPE vault_core_in_flight_requests gauge',
    'vault_core_in_flight_requests 5',
    '# HELP vault_route_update_transit_ Requests.',
    '# TYPE vault_route_update_transit_ summary',
    ...['0.5', '0.9', '0.99'].map((share) => `vault_route_update_transit_{quantile="${share}"} 1.984`),
    'vault_route_update_transit__sum 10',
    'vault_route_update_transit__count 5',
  ])
})

test('JSON has the reference fields', () => {
  const { Timestamp, Gauges, Points, Counters, Samples } = metricsJson(worker(3, 1).snapshot(), Date.UTC(2026, 0, 2))
  expect(Timestamp).toBe('2026-01-02 00:00:00 +0000 UTC')
  expect(Points).toEqual([])
  expect(Gauges).toContainEqual({ Name: 'vault.core.in_flight_requests', Value: 1, Labels: {} })
  expect(Counters).toEqual([{ Name: 'strongroom.hsm.operations', Count: 3, Sum: 3, Labels: { operation: 'sign' } }])
  expect(Samples).toEqual([
    expect.objectContaining({ Name: 'vault.route.update.transit-', Count: 3, Sum: 6, Mean: 2, Labels: {} }),
  ])
})

test('of a worker that has ended the totals remain, and nothing of its present', () => {
  const remains = totals(worker(2, 7).snapshot())
  expect(remains.map(({ kind }) => kind)).toEqual(['counter', 'timing'])
  const [sum] = merge([remains, totals(worker(3, 1).snapshot())]).filter(({ kind }) => kind === 'timing')
  expect(sum).toMatchObject({ timing: { count: 5, sumMilliseconds: 10, recent: [] } })
})

test('asking twice gives the same object: a node that is unsealed continues counting', () => {
  const metrics = worker(2, 1)
  metrics.counter('strongroom.hsm.operations', 'Calls.', { operation: 'sign' }).value++
  const found = metrics.snapshot().find(({ name }) => name === 'strongroom.hsm.operations')
  expect(found).toMatchObject({ value: 3 })
})

test('a shared number that cannot be read is left out and told of, and the others stay', async () => {
  const metrics = new Metrics()
  metrics.shared('a.b', 'Fails.', () => Promise.reject(new Error('a fault')))
  metrics.shared('e.f', 'Fails while the database is away.', () => Promise.reject(unavailable('the database is away')))
  metrics.shared('c.d', 'Answers.', () => [{ labels: { type: 'x' }, value: 1 }])
  const failed = vi.fn()
  expect(await metrics.sharedSnapshot(failed)).toEqual([
    { name: 'c.d', help: 'Answers.', labels: { type: 'x' }, kind: 'gauge', value: 1 },
  ])
  expect(failed.mock.calls).toEqual([['a.b', new Error('a fault')]])
})

test('a label holds any text without breaking its line', async () => {
  const metrics = new Metrics()
  metrics.counter('x.y', 'Odd.', { job: 'a"b\\c\nd' }).value = 1
  const { body } = await prometheus(metrics.snapshot())
  expect(body).toContain('x_y{job="a\\"b\\\\c\\nd"} 1\n')
})
