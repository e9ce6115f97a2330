import { residentLimit } from './app.ts'
import { createInitialDevices } from './audit/bootstrap.ts'
import { prepareAccess } from './auth/initialise.ts'
import { createInitialSettings } from './engines/transit/ring/bootstrap.ts'
import { makeUnsealSecret } from './keys/cluster/unsealing.ts'
import { type Ceremony, clusterState, initialise as initialiseKeys } from './keys/initialise.ts'
import { type Ground, openDatabase, openHsm } from './open.ts'
import { createInitialMounts } from './request/bootstrap.ts'

export interface InitialiseOptions extends Ground {
  readonly kek: Ceremony
  /** Text of the root token; random when absent. */
  readonly rootToken?: string
}

/** Shown once: nobody can read them again. */
export interface Initialised {
  readonly rootToken: string
  /** What `sys/unseal` will ask for after this node was sealed. */
  readonly unsealSecret: string
  readonly clusterId: string
}

/** Whether there is anything left for `initialise` to do. */
export async function isInitialised(ground: Ground): Promise<boolean> {
  await using database = await openDatabase(ground)
  const { state } = await database.schemaStatus()
  return state !== 'empty' && (await clusterState(database)) === 'ready'
}

/**
 * Makes a cluster, once: schema, keys in the token, default policy, root token, mounts. After a crash anywhere a second run
 * finishes it.
 * @throws Error in words when it is initialised already, or token or database are not up to it
 */
export async function initialise(options: InitialiseOptions): Promise<Initialised> {
  const { config, clock, log, rootToken: custom } = options
  await using database = await openDatabase(options)
  await database.migrate()
  await using hsm = await openHsm(options, (reason) => {
    throw reason
  })
  const { secret: unsealSecret, hash: unsealHash } = makeUnsealSecret()
  let rootToken = ''
  const { clusterId } = await initialiseKeys({
    ...{ hsm, database, clock, log, residentLimit, kek: options.kek },
    name: config.clusterName,
    strict: config.strict,
    fips: config.fips,
    handleLimit: config.caches.handles,
    async populate(custody) {
      const access = await prepareAccess({ database, clock, keys: custody, custom })
      await database.transaction(async (tx) => {
        await access.write(tx)
        await createInitialMounts(database, tx, clock.wall())
        await createInitialDevices(database, tx)
        await createInitialSettings(database, tx)
      })
      rootToken = access.rootToken
      return { unsealHash }
    },
  })
  return { rootToken, unsealSecret, clusterId }
}
