import type { Clock } from '../clock.ts'
import type { Engine } from '../engine.ts'
import { ApiError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { errorReply } from '../request/envelope.ts'
import type { Pipeline } from '../request/exchange.ts'
import { canonicalPath } from '../request/path.ts'
import { createPipeline } from '../request/pipeline.ts'
import type { Mount, Routes } from '../route.ts'
import type { StatusContext } from './context.ts'
import { unsealRoute } from './seal.ts'
import { statusRoutes } from './status.ts'

export interface SealedOptions {
  /** As StatusContext.unseal. */
  unseal(secret: string): Promise<boolean>
  /** Processes of this node that share its allowance of tries. */
  readonly workers: number
  readonly clock: Clock
  readonly log: Logger
}

/** Tries of the unseal secret that a node takes in a second, and at once when nobody tried for a while. */
const triesPerSecond = 4

const routes: Routes<StatusContext> = [...statusRoutes, unsealRoute]
const paths: ReadonlySet<string> = new Set(routes.map(({ path }) => `sys/${path}`))
const mount: Mount = { uuid: '', path: 'sys/', type: 'system', config: {} }
const sealed = errorReply(new ApiError(503, 'Vault is sealed'))

const nobody = () => undefined

/** What a sealed worker answers: its state, and `Vault is sealed` to everything else. It has no keys and knows nobody. */
export function createSealedPipeline(options: SealedOptions): Pipeline {
  const { clock, log } = options
  const status = { clusterName: '', clusterId: '', clock, createdAt: 0, sealed: () => true, hsmHealthy: () => true }
  const context: StatusContext = { status, unseal: limited(options) }
  const system: Engine<StatusContext> = { type: 'system', context, routes }
  const open = createPipeline({
    mounts: { find: () => mount },
    authenticator: { authenticate: nobody, recognise: nobody },
    engines: new Map([['system', system]]),
    log,
  })
  return { handle: (request) => (isOpen(request.rawPath) ? open.handle(request) : sealed) }
}

function isOpen(rawPath: string): boolean {
  try {
    return paths.has(canonicalPath(rawPath).path)
  } catch {
    return false
  }
}

/** Each worker has its share of the node's tries, whatever their outcome. */
function limited({ unseal, workers, clock, log }: SealedOptions): StatusContext['unseal'] {
  const share = triesPerSecond / workers
  const most = Math.max(1, share)
  let left = most
  let last = clock.monotonic()
  return async (secret) => {
    const now = clock.monotonic()
    left = Math.min(most, left + ((now - last) * share) / 1000)
    last = now
    if (left < 1) {
      throw new ApiError(429, `this node takes ${triesPerSecond} tries to unseal it in a second`, {
        retryAfterSeconds: 1,
      })
    }
    left--
    try {
      return await unseal(secret)
    } catch (error) {
      log.warn({ err: error }, 'this node was not unsealed')
      if (error instanceof ApiError) throw error
      throw new ApiError(503, `this node stays sealed: ${error instanceof Error ? error.message : 'unknown'}`, {
        cause: error,
      })
    }
  }
}
