import { shareMemory } from './http/budget.ts'
import { createListener, type Serving } from './http/listeners.ts'
import type { Pipeline, RawReply } from './request/exchange.ts'
import { runWorker } from './supervisor/runworker.ts'

const reply: RawReply = {
  status: 503,
  headers: ['Cache-Control', 'no-store', 'Content-Type', 'application/json', 'Retry-After', '1'],
  body: '{"errors":["no worker of this node is healthy; they are being restarted"]}\n',
}
const pipeline: Pipeline = { handle: () => reply }
const closeMilliseconds = 1000

/** The entry of the stand-in: it answers every request with 503, on the same listeners, while no worker is healthy. */
runWorker(async ({ config, log }) => {
  const budgets = shareMemory(config.limits.workerMemoryMebibytes)
  const listeners = new Map<string, Serving>()
  return {
    async listen() {
      for (const listener of config.listeners) {
        listeners.set(
          listener.address,
          await createListener(listener, { pipeline, log, limits: config.limits, budgets }),
        )
      }
    },
    accept(address, connection) {
      const listener = listeners.get(address)
      if (listener) listener.accept(connection)
      else connection.destroy()
    },
    async drain() {
      await Promise.all([...listeners.values()].map((listener) => listener.close(closeMilliseconds)))
    },
    announceEnd() {},
    hear() {},
    poll() {},
    reopen() {},
    seal() {},
    forget() {},
    snapshot: () => [],
    inFlight: () => [],
  }
})
