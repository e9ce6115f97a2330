import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { shareMemory } from '../../src/http/budget.ts'
import type { Measures } from './serverprocess.ts'
import { serve } from './serving.ts'

/**
 * A process that serves the test engine and nothing else, so that its memory is the server's. Forked with --expose-gc.
 */

const budgets = shareMemory(1024)
const { listener } = await serve({}, budgets, { requestSeconds: 60, leastBytesPerSecond: 0 })

let mostOfTurn = 0
const sockets: Socket[] = []
subscribe('net.server.socket', (message) => sockets.push((message as { socket: Socket }).socket))
function watchTurns(before: number): void {
  const now = sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  mostOfTurn = Math.max(mostOfTurn, now - before)
  setImmediate(watchTurns, now)
}

process.on('message', (message) => {
  if (message === 'turns') watchTurns(0)
  globalThis.gc?.()
  const { heldBytes } = budgets.strangers
  process.send?.({ residentBytes: process.memoryUsage.rss(), heldBytes, mostOfTurn } satisfies Measures)
})
process.on('disconnect', () => process.exit())
process.send?.(Number(listener.address.split(':').at(-1)))
