import type { Clock } from '../clock.ts'
import type { Engine } from '../engine.ts'
import { ApiError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { errorReply } from '../request/envelope.ts'
import type { Pipeline } from '../request/exchange.ts'
import { canonicalPath } from '../request/path.ts'
import { createPipeline } from '../request/pipeline.ts'
import type { Mount, Route, Routes } from '../route.ts'
import type { StatusContext } from './context.ts'
import { probeHealth, readHealth } from './routes/health.ts'
import { initialise, readInit } from './routes/init.ts'
import { readLeader } from './routes/leader.ts'
import { readSealStatus } from './routes/sealstatus.ts'
import { unsealNode } from './routes/unseal.ts'
import { Tries } from './tries.ts'

export interface SealedOptions {
  /** As StatusContext.unseal. */
  unseal(secret: string): Promise<boolean>
  /** As Status.draining. */
  draining(): boolean
  /** Processes of this node that share its allowance of tries. */
  readonly workers: number
  readonly clock: Clock
  readonly log: Logger
}

/** The routes of a sealed worker. */
export const sealedTable = {
  'GET health': readHealth,
  'HEAD health': probeHealth,
  'GET seal-status': readSealStatus,
  'GET leader': readLeader,
  'GET init': readInit,
  'POST init': initialise,
  'POST unseal': unsealNode,
} satisfies Readonly<Record<string, Route<StatusContext>>>

const routes: Routes<StatusContext> = Object.values(sealedTable)
const paths: ReadonlySet<string> = new Set(routes.map(({ path }) => `sys/${path}`))
const mount: Mount = { uuid: '', path: 'sys/', type: 'system', config: {} }
const sealed = errorReply(new ApiError(503, 'Vault is sealed'))

const noIdentity = () => undefined

/**
 * The pipeline of a sealed worker: its state, and `Vault is sealed` for everything else. It has no keys and no callers.
 */
export function createSealedPipeline(options: SealedOptions): Pipeline {
  const { clock, log, draining } = options
  const status = {
    clusterName: '',
    clusterId: '',
    clock,
    createdAt: 0,
    sealed: () => true,
    draining,
    hsmHealthy: () => true,
    databaseHealthy: () => true,
  }
  const context: StatusContext = { status, unseal: limited(options) }
  const system: Engine<StatusContext> = { type: 'system', context, routes }
  const statusPipeline = createPipeline({
    mounts: { find: () => mount },
    authenticator: { authenticate: noIdentity, recognise: noIdentity },
    engines: new Map([['system', system]]),
    log,
  })
  return { handle: (request) => (isStatusPath(request.rawPath) ? statusPipeline.handle(request) : sealed) }
}

function isStatusPath(rawPath: string): boolean {
  try {
    return paths.has(canonicalPath(rawPath).path)
  } catch {
    return false
  }
}

function limited({ unseal, workers, clock, log }: SealedOptions): StatusContext['unseal'] {
  const tries = new Tries({ workers, clock }, 'tries to unseal it')
  return async (secret) => {
    tries.take()
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
