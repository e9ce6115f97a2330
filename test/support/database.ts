import { randomBytes } from 'node:crypto'
import { createConnection } from 'mysql2/promise'

export interface TestDatabase extends AsyncDisposable {
  readonly url: string
  /** One for each node of the database: three in the Galera environment, else `url` alone. */
  readonly urls: readonly string[]
}

/** A fresh, empty schema of its own in the run's private MariaDB or Galera cluster; disposing drops it. */
export async function createDatabase(): Promise<TestDatabase> {
  const name = `t_${randomBytes(8).toString('hex')}`
  const urls = servers().map((server) => Object.assign(new URL(server), { pathname: name }).href)
  const [url] = urls
  const [server] = servers()
  if (url === undefined || server === undefined) throw new Error('not under vitest: test/support/global.ts has not run')
  const run = async (statement: string, uri = server): Promise<void> => {
    const connection = await createConnection({ uri, multipleStatements: true })
    await connection.query(statement).finally(() => connection.end())
  }
  await run(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`)
  // The other nodes of a cluster have it once they have caught up.
  for (const other of servers().slice(1)) await run('SET wsrep_sync_wait = 1; SHOW DATABASES', other)
  return { url, urls, [Symbol.asyncDispose]: () => run(`DROP DATABASE ${name}`) }
}

/** URLs without a schema. */
function servers(): string[] {
  const socket = process.env.STRONGROOM_TEST_SOCKET
  if (socket !== undefined) return [`mysql://root@localhost/?socketPath=${encodeURIComponent(socket)}`]
  return (process.env.STRONGROOM_TEST_URLS ?? '').split('\n').filter((line) => line !== '')
}
