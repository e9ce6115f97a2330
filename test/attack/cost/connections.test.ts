import { expect, test } from 'vitest'
import { connections } from '../../../scripts/storm/connections.ts'
import { useTarget } from './attacked.ts'

const target = useTarget()

test.each(connections)(
  '$title: nobody else waits, and of 50,000 requests the first hundred are served at most',
  async (attack) => {
    const before = await target.served()
    const { sent, health } = await target.withstand(attack)
    expect(sent.requests).toBeGreaterThan(50_000)
    const served = (await target.served()) - before - health.answers
    expect(served).toBeGreaterThan(10)
    expect(served).toBeLessThan(100)
  },
  120_000,
)
