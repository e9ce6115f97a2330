import { cpSync } from 'node:fs'
import { stateDirectoryOf, writeConfiguration } from '../configuration.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { engine } from '../engine.ts'
import { initCluster, type Shown } from '../init.ts'
import { configurationOf, copyToken, createHome, initToken, onSoftHsm, type TestToken } from '../token.ts'
import { oncePerRun } from './once.ts'
import { copyOf, type Original, original } from './schema.ts'

/** What `strongroom init` leaves behind, and what it has shown. */
export interface Cluster extends Shown {
  readonly token: TestToken
  readonly database: TestDatabase
}

interface Template extends Omit<Shown, 'said'> {
  readonly token: TestToken
  readonly schema: Original
  readonly stateDirectory: string
}

/**
 * A copy of the cluster that the run has initialised once: token, database and state directory. Every file of the run
 * gets the same keys and root token, in a SoftHSM and a schema of its own.
 * @returns undefined when this process has its copy, or the run is on other products than SoftHSM and one MariaDB
 */
export async function copyCluster(stateDirectory: string): Promise<Cluster | undefined> {
  if (!onSoftHsm || engine !== 'mariadb') return undefined
  const template = await oncePerRun('cluster', initialiseOne)
  const token = copyToken(template.token)
  if (token === undefined) return undefined
  cpSync(template.stateDirectory, stateDirectory, { recursive: true })
  const { rootToken, unsealSecret } = template
  return { token, database: await copyOf(template.schema), rootToken, unsealSecret, said: '' }
}

/** In a SoftHSM of its own, which this process does not use. */
async function initialiseOne(): Promise<Template> {
  const home = createHome()
  const token = await initToken(home, 'server-template')
  const database = await createDatabase()
  const configFile = writeConfiguration(home, { token, database })
  const { rootToken, unsealSecret } = await initCluster(configFile, { SOFTHSM2_CONF: configurationOf(home) })
  const schema = await original(database)
  return { token, schema, stateDirectory: stateDirectoryOf(home), rootToken, unsealSecret }
}
