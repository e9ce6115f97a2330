import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock as clock } from '../../../src/clock.ts'
import { Coherence } from '../../../src/store/coherence/coherence.ts'
import { Registry } from '../../../src/store/coherence/registry.ts'
import { Pool } from '../../../src/store/pool/pool.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { Line } from '../line.ts'
import { createBench, quiet as log } from '../support.ts'

const timeouts = { connectMilliseconds: 3000, statementMilliseconds: 8000 }
const poolOf = (url: string) =>
  new Pool({ targets: parseTargets(url), limit: 1, queueLimit: 10, tls: undefined, timeouts, clock })

test('every poll is counted, and one that the database did not answer as failed too', async () => {
  await using bench = await createBench()
  await using wire = await Line.open(bench.url)
  await using line = poolOf(wire.url)
  await using open = poolOf(bench.url)
  const [polls, failedPolls] = [{ value: 0 }, { value: 0 }]
  const times = { leaseMilliseconds: 1000, marginMilliseconds: 0, pollMilliseconds: 20 }
  const own = new Coherence({
    ...{ line, registry: new Registry(open, clock), clock, log, incarnation: 'own', times },
    ...{ drop: () => undefined, polls, failedPolls },
  })
  const more = async () => {
    const before = polls.value
    while (polls.value < before + 3) await delay(10)
  }
  await own.start()
  await more()
  expect(failedPolls.value).toBe(0)
  wire.left.down = 0
  await more()
  expect(failedPolls.value).toBe(1)
  await own.stop()
})
