import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createConnection } from 'mysql2/promise'
import { causal, clustered, inGroup } from './engine.ts'

export interface TestDatabase extends AsyncDisposable {
  readonly url: string
  /** One for each node of the database, the one that takes writes first: three of a cluster, else `url` alone. */
  readonly urls: readonly string[]
}

/**
 * A fresh, empty schema of its own in the run's database; disposing drops it.
 * @param filling statements that fill the schema of this name
 * @param apart the URL of another server to use
 */
export async function createDatabase(
  filling: (name: string) => readonly string[] = () => [],
  apart?: string,
): Promise<TestDatabase> {
  const name = `t_${randomBytes(8).toString('hex')}`
  const nodes = apart ? [apart] : await servers()
  const urls = nodes.map((server) => Object.assign(new URL(server), { pathname: name }).href)
  const [url] = urls
  const [server] = nodes
  if (url === undefined || server === undefined) throw new Error('not under vitest: test/support/global.ts has not run')
  await run(server, [`CREATE DATABASE ${name} CHARACTER SET utf8mb4`, ...filling(name)].join(';'))
  // The other nodes of a cluster have it once they have caught up: Galera waits before a SELECT (before SHOW it does not,
  // by this setting), Group Replication before a COMMIT.
  for (const other of nodes.slice(1)) await run(other, `${causal}; SELECT 1; COMMIT`)
  const drop = async () => {
    const [first = server, ...others] = apart ? [apart] : await servers()
    if (inGroup) await unused(name, [first, ...others])
    await run(first, `${causal}; DROP DATABASE ${name}`)
  }
  return { url, urls, [Symbol.asyncDispose]: drop }
}

/** Longer than `wait_timeout` of the sessions under test. */
const leavingMilliseconds = 12_000

/**
 * Waits until no session of these nodes is in the schema: a last statement of one whose client is gone may still commit,
 * and a member of a group that has dropped the schema before can no longer apply it, and leaves.
 */
async function unused(name: string, nodes: readonly string[]): Promise<void> {
  const sessions = `SELECT 1 FROM information_schema.PROCESSLIST WHERE DB = '${name}'`
  const end = Date.now() + leavingMilliseconds
  for (const node of nodes) {
    for (let left = true; left && Date.now() < end; await delay(10)) {
      const rows = await run(node, sessions)
      left = Array.isArray(rows) && rows.length > 0
    }
  }
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
