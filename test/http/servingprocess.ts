import { shareMemory } from '../../src/http/budget.ts'
import { serve } from './serving.ts'

/**
 * A process that serves the test engine and nothing else, so that its memory is the server's. Forked with --expose-gc.
 */

const budgets = shareMemory(1024)
const { listener } = await serve({}, budgets, { requestSeconds: 60, leastBytesPerSecond: 0 })

process.on('message', () => {
  globalThis.gc?.()
  process.send?.({ residentBytes: process.memoryUsage.rss(), heldBytes: budgets.strangers.heldBytes })
})
process.on('disconnect', () => process.exit())
process.send?.(Number(listener.address.split(':').at(-1)))
