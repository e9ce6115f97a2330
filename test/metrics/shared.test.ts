import { expect, test } from 'vitest'
import { Metrics } from '../../src/metrics.ts'

test('a shared gauge that could not be read is left out, alone, and is read again the next time', async () => {
  const metrics = new Metrics()
  let asked = 0
  metrics.shared('told', 'Always there.', () => [{ labels: {}, value: 1 }])
  metrics.shared('away', 'There from the second time on.', async () => {
    if (++asked === 1) throw new Error('the database is away')
    return [{ labels: {}, value: asked }]
  })
  const told = async () =>
    (await metrics.sharedSnapshot(() => {})).map((series) => [series.name, 'value' in series && series.value])
  expect(await told()).toEqual([['told', 1]])
  expect(await told()).toEqual([
    ['told', 1],
    ['away', 2],
  ])
})
