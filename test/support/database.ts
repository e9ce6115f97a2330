import { randomBytes } from 'node:crypto'
import { createConnection } from 'mysql2/promise'
import { causal, clustered } from './engine.ts'

export interface TestDatabase extends AsyncDisposable {
  readonly url: string
  /** One for each node of the database, the one that takes writes first: three of a cluster, else `url` alone. */
  readonly urls: readonly string[]
}

/**
 * A fresh, empty schema of its own in the run's database; disposing drops it.
 * @param filling statements that fill the schema of this name
 */
export async function createDatabase(filling: (name: string) => readonly string[] = () => []): Promise<TestDatabase> {
  const name = `t_${randomBytes(8).toString('hex')}`
  const nodes = await servers()
  const urls = nodes.map((server) => Object.assign(new URL(server), { pathname: name }).href)
  const [url] = urls
  const [server] = nodes
  if (url === undefined || server === undefined) throw new Error('not under vitest: test/support/global.ts has not run')
  await run(server, [`CREATE DATABASE ${name} CHARACTER SET utf8mb4`, ...filling(name)].join(';'))
  // The other nodes of a cluster have it once they have caught up. Group Replication waits before a COMMIT too.
  for (const other of nodes.slice(1)) await run(other, `${causal}; SHOW DATABASES; COMMIT`)
  const drop = async () => void (await run((await servers())[0] ?? server, `DROP DATABASE ${name}`))
  return { url, urls, [Symbol.asyncDispose]: drop }
}

async function run(uri: string, statements: string): Promise<unknown> {
  const connection = await createConnection({ uri, multipleStatements: true })
  const [answer] = await connection.query(statements).finally(() => connection.end())
  return answer
}

/** The URL, without a schema, of the run's database: of a cluster, of a node that takes writes. */
export async function writingServer(): Promise<string> {
  const [server] = await servers()
  if (server === undefined) throw new Error('not under vitest: test/support/global.ts has not run')
  return server
}

/** URLs without a schema; those of nodes that take no writes at the end. */
async function servers(): Promise<string[]> {
  const socket = process.env.STRONGROOM_TEST_SOCKET
  if (socket !== undefined) return [`mysql://root@localhost/?socketPath=${encodeURIComponent(socket)}`]
  const all = (process.env.STRONGROOM_TEST_URLS ?? '').split('\n').filter((line) => line !== '')
  if (!clustered) return all
  const writing = await Promise.all(all.map((server) => takesWrites(server)))
  return [...all.filter((_, n) => writing[n]), ...all.filter((_, n) => !writing[n])]
}

const takesWrites = (server: string): Promise<boolean> =>
  run(server, 'SELECT @@read_only AS closed').then(
    (rows) => Array.isArray(rows) && Number((rows[0] as { closed: unknown }).closed) === 0,
    () => false,
  )
