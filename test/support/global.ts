import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startMariaDb } from '../../scripts/embedded/mariadb.ts'

/** Makes what a run of tests shares, in a short-named directory: one private MariaDB, or a Galera cluster. */
export async function setup(): Promise<() => Promise<void>> {
  const directory = mkdtempSync(join(tmpdir(), 'sr-'))
  process.env.STRONGROOM_TEST_DIRECTORY = directory
  process.env.STRONGROOM_GALERA_DIRECTORY = join(tmpdir(), `sr-galera-${process.pid}`)
  process.env.TMPDIR = directory // what a test leaves in os.tmpdir() goes with the run
  const clean = (): void => rmSync(directory, { recursive: true, force: true })
  try {
    const stop = process.env.STRONGROOM_TEST_GALERA ? startGalera() : await startPrivate(join(directory, 'db'))
    return async () => {
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

/** Three nodes that end with this process. Tests may run scripts/galera themselves: its variables are set for them. */
function startGalera(): () => Promise<void> {
  const galera = (verb: string): string =>
    execFileSync(join(import.meta.dirname, '../../scripts/galera'), [verb], { encoding: 'utf8' })
  process.env.STRONGROOM_GALERA_PORT = String(13_000 + (process.pid % 36) * 500)
  process.env.STRONGROOM_GALERA_OWNER = String(process.pid)
  galera('init')
  galera('start')
  process.env.STRONGROOM_TEST_URLS = galera('urls')
  return async () => void galera('destroy')
}
