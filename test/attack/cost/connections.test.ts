import { expect, test } from 'vitest'
import { connections } from '../../../scripts/storm/connections.ts'
import { useTarget } from './attacked.ts'

const target = useTarget()

test.each(connections)(
  '$title: nobody else waits, and no more than its beginning is read',
  async (attack) => {
    const { sent } = await target.withstand(attack)
    expect(sent.requests).toBeGreaterThan(50_000)
  },
  120_000,
)
