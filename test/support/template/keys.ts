import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TestDatabase } from '../database.ts'
import { engine } from '../engine.ts'
import { configurationOf, copyToken, createHome, createToken, initToken, onSoftHsm, type TestToken } from '../token.ts'
import { createMigrated } from './migrated.ts'
import { oncePerRun } from './once.ts'
import type { Preparation } from './prepare.ts'
import { copyOf, type Original, original } from './schema.ts'

const run = promisify(execFile)
const script = join(import.meta.dirname, 'prepare.ts')

/**
 * An empty token whose directory has the results of its self-test, which makes RSA keys; the process's first one is a
 * copy of the run's, the next ones are new and not tested.
 */
export async function createTestedToken(name?: string): Promise<TestToken> {
  const copy = onSoftHsm && engine === 'mariadb' ? copyToken(await oncePerRun('token', testOne)) : undefined
  return copy ?? createToken(name)
}

/**
 * A token and a database with the keys of a cluster, without mounts, policies and tokens: copies, once per process.
 * @returns undefined as in copyCluster
 */
export async function copyKeys(): Promise<{ token: TestToken; database: TestDatabase } | undefined> {
  if (!onSoftHsm || engine !== 'mariadb') return undefined
  const { token, schema } = await oncePerRun('keys', makeKeys)
  const copy = copyToken(token)
  return copy && { token: copy, database: await copyOf(schema) }
}

async function testOne(): Promise<TestToken> {
  const token = await initToken(createHome(), 'token-template')
  await prepare({ token })
  return token
}

async function makeKeys(): Promise<{ token: TestToken; schema: Original }> {
  const token = await initToken(createHome(), 'keys-template')
  const database = await createMigrated()
  await prepare({ token, url: database.url })
  return { token, schema: await original(database) }
}

async function prepare(order: Preparation): Promise<void> {
  const env = { ...process.env, SOFTHSM2_CONF: configurationOf(order.token.directory) }
  await run(process.execPath, [script, JSON.stringify(order)], { env })
}
