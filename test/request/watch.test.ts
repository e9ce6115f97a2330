import { expect, test } from 'vitest'
import { systemClock as clock } from '../../src/clock.ts'
import { createLog } from '../../src/log.ts'
import { Metrics } from '../../src/metrics.ts'
import { InFlight } from '../../src/request/inflight.ts'
import { Watch } from '../../src/request/watch.ts'

const raw = {
  ...{ id: 'i', receivedAt: 0, method: 'GET', rawPath: '/v1/x', query: '', headers: {}, body: Buffer.alloc(0) },
  ...{ remoteAddress: '', remotePort: 0, clientCertificate: undefined },
}
const reply = { status: 204, headers: [], body: '' }

test('mounts that come and go leave no timings behind, and one in use keeps its own', () => {
  const metrics = new Metrics()
  const watch = new Watch({ metrics, inFlight: new InFlight(clock), clock, log: createLog('silent') })
  const ask = (mount: string): unknown =>
    watch.over(raw, (request) => {
      Object.assign(request, { mount, operation: 'read' })
      return reply
    })
  for (let index = 0; index < 3000; index++) {
    ask(`ci-${index}/`)
    ask('secret/')
  }
  const timed = metrics.snapshot().filter(({ name }) => name.startsWith('vault.route.'))
  expect(timed).toHaveLength(1000)
  expect(timed.map(({ name }) => name)).toContain('vault.route.read.secret-')
  expect(timed.map(({ name }) => name)).not.toContain('vault.route.read.ci-0-')
})

test('the time that a request has waited before it begins counts', () => {
  const metrics = new Metrics()
  const watch = new Watch({ metrics, inFlight: new InFlight(clock), clock, log: createLog('silent') })
  watch.over({ ...raw, receivedAt: clock.monotonic() - 5000 }, () => reply)
  const [all] = metrics.snapshot().filter(({ name }) => name === 'vault.core.handle_request')
  expect(all).toMatchObject({ timing: { sumMilliseconds: expect.closeTo(5000, -2) } })
})
