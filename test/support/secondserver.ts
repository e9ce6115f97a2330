import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { startMariaDb } from '../../scripts/embedded/mariadb.ts'
import { onMySql } from './engine.ts'

/** A database server beside the run's own, which shares nothing with it. */
export interface SecondServer extends AsyncDisposable {
  readonly socket: string
  readonly url: string
}

/** Starts a MySQL where the run is on one, otherwise a MariaDB, with an empty schema in it. */
export async function startSecondServer(directory: string, schema: string): Promise<SecondServer> {
  if (!onMySql) return startMariaDb({ directory, schema, durable: false })
  const home = join(directory, 'm')
  const env = { ...process.env, STRONGROOM_MYSQL_KIND: 'alone', STRONGROOM_MYSQL_DIRECTORY: home }
  const nodes = (verb: string): string =>
    execFileSync(join(import.meta.dirname, '../../scripts/mysql/nodes'), [verb], { encoding: 'utf8', env })
  nodes('init')
  nodes('start')
  const socket = join(home, '1', 'socket')
  execFileSync('mariadb', ['--no-defaults', '-uroot', `-S${socket}`, '-e', `CREATE DATABASE ${schema}`])
  const url = Object.assign(new URL(nodes('urls').trim()), { pathname: schema }).href
  return { socket, url, [Symbol.asyncDispose]: async () => void nodes('destroy') }
}
