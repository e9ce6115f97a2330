import { openListener } from './http/listeners.ts'
import type { Pipeline, RawReply } from './request/exchange.ts'
import { runWorker } from './supervisor/runworker.ts'

const reply: RawReply = {
  status: 503,
  headers: ['Cache-Control', 'no-store', 'Content-Type', 'application/json', 'Retry-After', '1'],
  body: '{"errors":["no worker of this node is healthy; they are being restarted"]}\n',
}
const pipeline: Pipeline = { handle: () => reply }
const closeMilliseconds = 1000

/** The entry of the stand-in: it answers 503 to everything, on the same listeners, while no worker is healthy. */
runWorker(async ({ config, log }) => {
  const open = () =>
    Promise.all(config.listeners.map((listener) => openListener(listener, { pipeline, log, limits: config.limits })))
  let listeners: Awaited<ReturnType<typeof open>> = []
  return {
    async listen() {
      listeners = await open()
      return { addresses: listeners.map(({ address }) => address) }
    },
    async drain() {
      await Promise.all(listeners.map((listener) => listener.close(closeMilliseconds)))
    },
    hear() {},
    poll() {},
    seal() {},
    forget() {},
    snapshot: () => [],
  }
})
