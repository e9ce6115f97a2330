import { expect, test } from 'vitest'
import { systemClock as clock } from '../../src/clock.ts'
import { Coherence } from '../../src/store/coherence/coherence.ts'
import { Registry } from '../../src/store/coherence/registry.ts'
import { Settlement } from '../../src/store/coherence/settlement.ts'
import { Pool } from '../../src/store/pool/pool.ts'
import { parseTargets } from '../../src/store/pool/target.ts'
import { Line } from './line.ts'
import { createBench, quiet as log } from './support.ts'

const timeouts = { connectMilliseconds: 3000, statementMilliseconds: 300 }
const poolOf = (url: string) =>
  new Pool({ targets: parseTargets(url), limit: 1, queueLimit: 10, tls: undefined, timeouts, clock })

test('a writer whose looks all fail waits for the longest lease of the cluster, not for its own', async () => {
  await using bench = await createBench()
  await using line = await Line.open(bench.url)
  await using open = poolOf(bench.url)
  await using cut = poolOf(line.url)
  const registry = new Registry(open, clock)
  await registry.register('longer', 1500)
  const times = { leaseMilliseconds: 100, marginMilliseconds: 0, pollMilliseconds: 50 }
  const own = new Coherence({
    ...{ line: open, registry, clock, log, incarnation: 'own', times },
    drop: () => undefined,
    polls: { value: 0 },
    failedPolls: { value: 0 },
  })
  await own.start()
  line.silent = true
  const settlement = new Settlement({ registry: new Registry(cut, clock), clock, log, times, own })
  const began = clock.monotonic()
  await settlement.settled({ leaves: [[1, 1]], groups: [[0, 1]] })
  expect(clock.monotonic() - began).toBeGreaterThanOrEqual(1499)
  await own.stop()
})
