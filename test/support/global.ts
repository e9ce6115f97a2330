import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startMariaDb } from '../../scripts/embedded/mariadb.ts'
import { compile } from '../../src/hsm/strict/compile.ts'
import { engine } from './engine.ts'
import { offerSharedNode } from './template/sharednode.ts'

/** Prints the declarations that test/support/answers.ts checks answers against. */
const contractProgram = join(import.meta.dirname, 'contract.ts')

/**
 * Starts the servers that a run of tests shares, in a short-named directory: a private MariaDB, or those of engine.ts.
 */
export async function setup(): Promise<() => Promise<void>> {
  const directory = mkdtempSync(join(tmpdir(), 'sr-'))
  process.env.STRONGROOM_TEST_DIRECTORY = directory
  process.env.STRONGROOM_GALERA_DIRECTORY = join(tmpdir(), `sr-galera-${process.pid}`)
  process.env.STRONGROOM_MYSQL_DIRECTORY = join(tmpdir(), `sr-mysql-${process.pid}`)
  await compile('strict-kek', 'program')
  writeFileSync(join(directory, 'contract.json'), execFileSync(process.execPath, [contractProgram]))
  process.env.TMPDIR = directory // what a test leaves in os.tmpdir() goes with the run
  const clean = (): void => rmSync(directory, { recursive: true, force: true })
  try {
    const stop = engine === 'mariadb' ? await startPrivate(join(directory, 'db')) : startNodes()
    const endShared = await offerSharedNode()
    return async () => {
      await endShared()
      await stop()
      clean()
    }
  } catch (error) {
    clean()
    throw error
  }
}

/** test/support/database.ts makes schemas in it. */
async function startPrivate(directory: string): Promise<() => Promise<void>> {
  const mariadb = await startMariaDb({ directory, schema: 'first', durable: false })
  process.env.STRONGROOM_TEST_SOCKET = mariadb.socket
  return async () => mariadb[Symbol.asyncDispose]()
}

/** Nodes that end with this process. Tests may run the script themselves: its variables are set for them. */
function startNodes(): () => Promise<void> {
  const [script, prefix] =
    engine === 'galera' ? ['galera', 'STRONGROOM_GALERA'] : [join('mysql', 'nodes'), 'STRONGROOM_MYSQL']
  const nodes = (verb: string): string =>
    execFileSync(join(import.meta.dirname, '../../scripts', script), [verb], { encoding: 'utf8' })
  process.env[`${prefix}_PORT`] = String(13_000 + (process.pid % 36) * 500)
  process.env[`${prefix}_OWNER`] = String(process.pid)
  process.env.STRONGROOM_MYSQL_KIND = engine
  try {
    nodes('init')
    nodes('start')
  } catch (error) {
    nodes('destroy')
    throw error
  }
  process.env.STRONGROOM_TEST_URLS = nodes('urls')
  return async () => void nodes('destroy')
}
