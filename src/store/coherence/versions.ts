import type { Version } from '../../workload.ts'
import type { Connection } from '../pool/connection.ts'
import type { Session } from '../pool/session.ts'
import { databaseTime } from '../time.ts'
import { firstLeaf, groupOf, groupOfSql, leafVersion } from './leaves.ts'

/** A group: its v, and its base, the part of v that counts for every leaf. */
export interface Group {
  readonly group: number
  readonly v: number
  readonly base: number
}

/** The answer of one statement to a poll. */
export interface Sight {
  /** Whether the worker's own registration exists and is not condemned. */
  readonly registered: boolean
  /** The longest lease of a registered worker. */
  readonly leaseMilliseconds: number
  /** The database's clock, in milliseconds. */
  readonly time: number
  readonly groups: readonly Group[]
}

/** v of a leaf as part of a statement: one row, to which other tables can be joined. */
export const stampSql = (leaf: number) => ({
  select: leafVersion,
  from: '`schema` s JOIN versions g ON g.bucket = ? LEFT JOIN version_leaves l ON l.leaf = ?',
  values: [groupOf(leaf), leaf],
})

/** v of a leaf in the snapshot of `q`. */
export async function stampOf(q: Session, leaf: number): Promise<number> {
  const { select, from, values } = stampSql(leaf)
  const [row] = await q.rows(`SELECT ${select} FROM ${from}`, values)
  if (row === undefined) throw new Error(`there is no version of group ${groupOf(leaf)}`)
  return Number(row[0])
}

/** The row of a poll's answer that has what is not about a group. */
const about = 'bucket = 0'
const once = (sql: string): string => `CASE WHEN ${about} THEN ${sql} END`

/**
 * All groups, and whether this registration is valid, from a node that takes writes. What is not about a group is in
 * one row of the several hundred: in each of them it makes the answer take one and a half times as long.
 */
export async function readGroups(connection: Connection, registration: string): Promise<Sight> {
  const select = `${once('(SELECT condemned FROM registrations WHERE id = ?)')},
    ${once('(SELECT MAX(lease_milliseconds) FROM registrations)')}, ${once(databaseTime)},
    bucket, v, v - itemised FROM versions`
  const rows = await connection.ask(select, [registration], about)
  const groups = rows.map(([, , , group, v, base]) => ({ group: Number(group), v: Number(v), base: Number(base) }))
  const [condemned, leaseMilliseconds, time] = rows.find(([, , , group]) => Number(group) === 0) ?? []
  return { registered: condemned === 0, leaseMilliseconds: Number(leaseMilliseconds), time: Number(time), groups }
}

/** The leaves of these groups that have ever changed. */
export async function readLeaves(connection: Connection, groups: readonly number[]): Promise<Version[]> {
  const few = groups.length <= mostRanges
  const ranges = groups.map((group) => `l.leaf >= ${firstLeaf(group)} AND l.leaf < ${firstLeaf(group + 1)}`)
  const sql = `SELECT l.leaf, ${leafVersion} FROM version_leaves l JOIN versions g ON g.bucket = ${groupOfSql('l.leaf')}
    ${few ? `WHERE ${ranges.join(' OR ')}` : ''}`
  const [answer] = await connection.script([sql])
  return (answer?.rows ?? []).map(([leaf, v]) => [Number(leaf), Number(v)] as const)
}

/** With more changed groups than this all leaves are read. */
const mostRanges = 32
