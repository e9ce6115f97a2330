import { createInitialDevices } from './audit/bootstrap.ts'
import { prepareAccess } from './auth/initialise.ts'
import { createInitialAuthorities } from './engines/pki/authority/bootstrap.ts'
import { createInitialCrls } from './engines/pki/crl/bootstrap.ts'
import { createInitialSettings } from './engines/transit/ring/bootstrap.ts'
import { makeUnsealSecret } from './keys/cluster/unsealing.ts'
import { type Ceremony, clusterState, initialise as initialiseKeys } from './keys/initialise.ts'
import { openDatabase, openHsm, residentLimit } from './open.ts'
import { createInitialMounts } from './request/mounts/bootstrap.ts'
import { createSystemSettings } from './settings/settings.ts'
import type { ProcessContext } from './workload.ts'

export interface InitialiseOptions extends ProcessContext {
  readonly kek: Ceremony
  /** Text of the root token; random when absent. */
  readonly rootToken?: string
  /** Receives what can be shown once as soon as the cluster is made: no later failure may keep it back. */
  show(made: Initialised): void
}

/** Shown once: they cannot be read again. */
export interface Initialised {
  readonly rootToken: string
  /** Needed for `sys/unseal` after a node was sealed. */
  readonly unsealSecret: string
  readonly clusterId: string
}

/** Whether `initialise` has been completed. */
export async function isInitialised(context: ProcessContext): Promise<boolean> {
  await using database = await openDatabase(context)
  const { state } = await database.schemaStatus()
  return state !== 'empty' && (await clusterState(database)) === 'ready'
}

/**
 * Creates a cluster, once: schema, keys in the token, default policy, root token, mounts. After a crash a second run
 * completes it.
 * @returns what failed after it was made and shown: the cluster is as good as any
 * @throws Error with an explanation when it is already initialised, or token or database cannot hold it
 */
export async function initialise(options: InitialiseOptions): Promise<unknown> {
  let isMade = false
  const show = (made: Initialised): void => {
    isMade = true
    options.show(made)
  }
  try {
    await make({ ...options, show })
    return undefined
  } catch (fault) {
    if (!isMade) throw fault
    return fault
  }
}

async function make(options: InitialiseOptions): Promise<void> {
  const { config, clock, log, rootToken: custom } = options
  await using database = await openDatabase(options)
  await database.migrate()
  await using hsm = await openHsm(options, (reason) => {
    throw reason
  })
  const { secret: unsealSecret, hash: unsealHash } = makeUnsealSecret()
  let rootToken = ''
  await initialiseKeys({
    ...{ hsm, database, clock, log, residentLimit, kek: options.kek },
    name: config.clusterName,
    strict: config.strict,
    fips: config.fips,
    handleLimit: config.caches.handles,
    async populate(custody) {
      const access = await prepareAccess({ database, clock, keys: custody.macs, custom })
      await database.transaction(async (tx) => {
        await access.write(tx)
        await createInitialMounts(database, tx, clock.wall())
        await createInitialDevices(database, tx)
        await createSystemSettings(database, tx)
        await createInitialSettings(database, tx)
        await createInitialAuthorities({ database, clock }, tx)
        await createInitialCrls({ database }, tx)
      })
      rootToken = access.rootToken
      return { unsealHash }
    },
    ready: (clusterId) => options.show({ rootToken, unsealSecret, clusterId }),
  })
}
