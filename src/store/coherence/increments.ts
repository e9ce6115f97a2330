import type { Version } from '../../workload.ts'
import { assertion } from '../pool/assertion.ts'
import type { Answer } from '../pool/connection.ts'
import { groupOf, groupOfSql, leafVersion } from './leaves.ts'

/** The new versions of everything a transaction touched. */
export interface Versions {
  readonly leaves: readonly Version[]
  readonly groups: readonly Version[]
}

/** Versions that leaves are assumed to have, and the bases of their groups that are a part of these. */
export interface Assumed {
  readonly stamps: ReadonlyMap<number, number>
  readonly bases: ReadonlyMap<number, number>
}

/** Statements, and how their answers are read. */
interface Increments {
  readonly statements: readonly string[]
  read(answers: readonly Answer[]): Versions
}

/**
 * Statements that increment the leaves, and each of their groups once, in ascending order, and read the new versions.
 * One of them fails if a leaf had not the version that is assumed.
 * @param returning whether the server's INSERT can return what it has written
 */
export function increments(leaves: readonly number[], assumed: Assumed, returning: boolean): Increments {
  const groups = [...new Set(leaves.map(groupOf))]
  if (leaves.length === 0) return { statements: [], read: () => ({ leaves: [], groups: [] }) }
  return (returning ? returned : selected)(leaves, groups, assumed)
}

/** An expression, 1 where a number has the value that it is due to have, and where none is due; elsewhere it fails. */
function unlessOther(value: string, by: string, due: readonly (readonly [number, number])[]): string {
  if (due.length === 0) return '1'
  const cases = due.map(([of, number]) => `WHEN ${of} THEN ${number}`)
  return assertion(`${value} = CASE ${by} ${cases.join(' ')} ELSE ${value} END`)
}

const incrementLeaves = (leaves: readonly number[], one = '1'): string => `INSERT INTO version_leaves (leaf, v)
  VALUES ${leaves.map((leaf) => `(${leaf}, 1)`).join()} ON DUPLICATE KEY UPDATE v = v + ${one}`

function selected(leaves: readonly number[], groups: readonly number[], { stamps }: Assumed): Increments {
  const due = [...stamps].map(([leaf, v]) => [leaf, v + 1] as const)
  return {
    statements: [
      `UPDATE versions SET v = v + 1, itemised = itemised + 1 WHERE bucket IN (${groups.join()}) ORDER BY bucket`,
      incrementLeaves(leaves),
      `SELECT l.leaf, ${leafVersion} AS version, g.bucket, g.v, ${unlessOther(leafVersion, 'l.leaf', due)} AS asserted
        FROM version_leaves l JOIN versions g ON g.bucket = ${groupOfSql('l.leaf')} WHERE l.leaf IN (${leaves.join()})`,
    ],
    read([, , read]) {
      const rows = read?.rows ?? []
      const found = new Map(rows.map(([, , group, v]) => [Number(group), Number(v)]))
      return { leaves: rows.map(([leaf, v]) => [Number(leaf), Number(v)] as const), groups: [...found] }
    },
  }
}

/**
 * The base of a group is asserted apart from the versions of its leaves: neither statement sees both. What fails among
 * the values that MariaDB returns fails no statement (seen on 10.11 with Galera, from the second row on): so these are
 * columns, and the assertions a part of the increments.
 */
function returned(leaves: readonly number[], groups: readonly number[], { stamps, bases }: Assumed): Increments {
  const before = [...stamps].map(([leaf, v]) => [leaf, v - (bases.get(groupOf(leaf)) ?? 0)] as const)
  // A leaf without a row is inserted, and compared with nothing: where it had one, its group has lost changes.
  const counted = new Map<number, number>()
  for (const [leaf, v] of before) counted.set(groupOf(leaf), v + (counted.get(groupOf(leaf)) ?? 0))
  const groupsBefore = [...bases].map(
    ([group, base]) => `WHEN ${group} THEN v - itemised = ${base} AND itemised >= ${counted.get(group) ?? 0}`,
  )
  const oneOfGroup = groupsBefore.length === 0 ? '1' : assertion(`CASE bucket ${groupsBefore.join(' ')} ELSE 1 END`)
  return {
    statements: [
      `INSERT INTO versions (bucket, v, itemised) VALUES ${groups.map((group) => `(${group}, 1, 1)`).join()}
        ON DUPLICATE KEY UPDATE v = v + ${oneOfGroup}, itemised = itemised + 1
        RETURNING bucket, v, v - itemised AS base`,
      `${incrementLeaves(leaves, unlessOther('v', 'leaf', before))} RETURNING leaf, v`,
    ],
    read([ofGroups, ofLeaves]) {
      const found = (ofGroups?.rows ?? []).map(([group, v, base]) => [Number(group), Number(v), Number(base)] as const)
      const baseOf = new Map(found.map(([group, , base]) => [group, base]))
      return {
        groups: found.map(([group, v]) => [group, v] as const),
        leaves: (ofLeaves?.rows ?? []).map(([leaf, v]) => {
          return [Number(leaf), Number(v) + (baseOf.get(groupOf(Number(leaf))) ?? Number.NaN)] as const
        }),
      }
    },
  }
}
