import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { ApiError } from '../../src/errors.ts'
import type { Database } from '../../src/store/database.ts'
import { type Bench, policies, policy, randomName } from '../store/support.ts'

/** scripts/mysql/nodes, for the servers of this run. */
export const nodes = (...words: string[]): string =>
  execFileSync(join(import.meta.dirname, '../../scripts/mysql/nodes'), words, { encoding: 'utf8' })

/** The number by which the script knows a member. */
export const numberOf = (url: string): string =>
  String(
    nodes('urls')
      .split('\n')
      .indexOf(Object.assign(new URL(url), { pathname: '' }).href) + 1,
  )

/** Runs statements in one session of a member, as its owner could. */
export async function tell(url: string, ...statements: readonly string[]): Promise<void> {
  const connection = await createConnection(url)
  try {
    for (const statement of statements) await connection.query(statement)
  } finally {
    await connection.end()
  }
}

/** MEMBER_STATE, in the member's own view. */
export async function stateOf(url: string): Promise<string> {
  const connection = await createConnection(url)
  const [rows] = await connection
    .query<RowDataPacket[]>(
      'SELECT MEMBER_STATE AS state FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid',
    )
    .finally(() => connection.end())
  return String(rows[0]?.state)
}

/**
 * A member that is about to fall behind: the last one, or the primary, where only that takes writes. Workers of it
 * alone have read a row, one of them into its cache.
 */
export interface Far {
  readonly url: string
  /** The database through the other two members. */
  readonly near: Database
  readonly id: string
  /** The row's text in each way to read it through the far member; 503 where that was refused. */
  answers(): Promise<unknown[]>
}

function refused(error: unknown): number {
  if (error instanceof ApiError) return error.status
  throw error
}

export async function farMember(bench: Bench, primary: boolean): Promise<Far> {
  const urls = [0, 1, 2].map((n) => bench.nodeUrl(n))
  const url = bench.nodeUrl(primary ? 0 : 2)
  const near = await bench.another({ url: urls.filter((one) => one !== url).join() })
  const table = bench.database.table(policies)
  const { id } = await bench.database.transaction((tx) => table.insert(tx, policy(randomName(), 'old')))
  const database = await bench.another({ url })
  const cache = database.cache({
    table: 'policies',
    limit: 10,
    load: (q, wanted) => database.table(policies).get(q, wanted),
  })
  await database.start()
  await cache.get(id)
  const plain = await bench.another({ url })
  const ways = [
    async () => cache.get(id),
    () => database.read((q) => database.table(policies).get(q, id)),
    () => plain.read((q) => plain.table(policies).get(q, id)),
    () => plain.snapshot((q) => plain.table(policies).get(q, id)),
    () => plain.transaction((tx) => plain.table(policies).get(tx, id)),
  ]
  const answers = () => Promise.all(ways.map((way) => way().then((row) => row?.text, refused)))
  return { url, near, id, answers }
}

/** Writes the row through the other members, as soon as these have agreed on who takes writes. */
export async function writeNear({ near, id }: Far, text: string): Promise<void> {
  await near.transaction(
    async (tx) => {
      const row = await near.table(policies).get(tx, id)
      if (row) await near.table(policies).update(tx, row, { text })
      tx.touch('policies', id)
    },
    { deadlineMilliseconds: 90_000 },
  )
}
