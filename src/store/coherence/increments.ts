import type { Version } from '../../workload.ts'
import { places } from '../places.ts'
import { assertion } from '../pool/assertion.ts'
import { type Parameterised, parameterised, recurring, type Statement } from '../pool/literal.ts'
import type { Stored } from '../table.ts'
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

/** The rows of a statement. */
type Rows = readonly (readonly Stored[])[]

/** Statements, and how the rows that they give are read. */
interface Increments {
  readonly statements: readonly (string | Parameterised)[]
  /** @param given the rows of each statement of the transaction that gives any */
  read(given: readonly Rows[]): Versions
}

/**
 * Statements that increment the leaves, and each of their groups once, in ascending order, and read the new versions.
 * One of them fails if a leaf had not the version that is assumed.
 * @param returning whether the server's INSERT can return what it has written
 */
export function increments(leaves: readonly number[], assumed: Assumed, returning: boolean): Increments {
  const groups = [...new Set(leaves.map(groupOf))]
  if (leaves.length === 0) return { statements: [], read: () => ({ leaves: [], groups: [] }) }
  const { statements, read } = (returning ? returned : selected)(leaves, groups, assumed)
  return { statements: statements.map((one) => recurring(parameterised(one), leaves.length)), read }
}

/** As Increments, for any number of leaves. */
interface Draft {
  readonly statements: readonly Statement[]
  readonly read: Increments['read']
}

/** An expression, 1 where a number has the value that it is due to have, and where none is due; elsewhere it fails. */
function unlessOther(value: string, by: string, due: readonly (readonly [number, number])[]): Statement {
  if (due.length === 0) return { sql: '1', values: [] }
  const cases = due.map(() => 'WHEN ? THEN ?').join(' ')
  return { sql: assertion(`${value} = CASE ${by} ${cases} ELSE ${value} END`), values: due.flat() }
}

const incrementLeaves = (leaves: readonly number[], one = '1'): string => `INSERT INTO version_leaves (leaf, v)
  VALUES ${leaves.map(() => '(?, 1)').join()} ON DUPLICATE KEY UPDATE v = v + ${one}`

function selected(leaves: readonly number[], groups: readonly number[], { stamps }: Assumed): Draft {
  const due = [...stamps].map(([leaf, v]) => [leaf, v + 1] as const)
  const asserted = unlessOther(leafVersion, 'l.leaf', due)
  return {
    statements: [
      {
        sql: `UPDATE versions SET v = v + 1, itemised = itemised + 1 WHERE bucket IN (${places(groups)}) ORDER BY bucket`,
        values: groups,
      },
      { sql: incrementLeaves(leaves), values: leaves },
      {
        sql: `SELECT l.leaf, ${leafVersion} AS version, g.bucket, g.v, ${asserted.sql} AS asserted
        FROM version_leaves l JOIN versions g ON g.bucket = ${groupOfSql('l.leaf')} WHERE l.leaf IN (${places(leaves)})`,
        values: [...asserted.values, ...leaves],
      },
    ],
    read(given) {
      const rows = given.at(-1) ?? []
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
function returned(leaves: readonly number[], groups: readonly number[], { stamps, bases }: Assumed): Draft {
  const before = [...stamps].map(([leaf, v]) => [leaf, v - (bases.get(groupOf(leaf)) ?? 0)] as const)
  // A leaf without a row is inserted, and compared with nothing: where it had one, its group has lost changes.
  const counted = new Map<number, number>()
  for (const [leaf, v] of before) counted.set(groupOf(leaf), Math.max(v, counted.get(groupOf(leaf)) ?? 0))
  const groupsBefore = [...bases].map(([group, base]) => [group, base, counted.get(group) ?? 0])
  const cases = groupsBefore.map(() => 'WHEN ? THEN v - itemised = ? AND itemised >= ?')
  const oneOfGroup = cases.length === 0 ? '1' : assertion(`CASE bucket ${cases.join(' ')} ELSE 1 END`)
  const asserted = unlessOther('v', 'leaf', before)
  return {
    statements: [
      {
        sql: `INSERT INTO versions (bucket, v, itemised) VALUES ${groups.map(() => '(?, 1, 1)').join()}
        ON DUPLICATE KEY UPDATE v = v + ${oneOfGroup}, itemised = itemised + 1
        RETURNING bucket, v, v - itemised AS base`,
        values: [...groups, ...groupsBefore.flat()],
      },
      {
        sql: `${incrementLeaves(leaves, asserted.sql)} RETURNING leaf, v`,
        values: [...leaves, ...asserted.values],
      },
    ],
    read(given) {
      const [ofGroups = [], ofLeaves = []] = given.slice(-2)
      const found = ofGroups.map(([group, v, base]) => [Number(group), Number(v), Number(base)] as const)
      const baseOf = new Map(found.map(([group, , base]) => [group, base]))
      return {
        groups: found.map(([group, v]) => [group, v] as const),
        leaves: ofLeaves.map(([leaf, v]) => {
          return [Number(leaf), Number(v) + (baseOf.get(groupOf(Number(leaf))) ?? Number.NaN)] as const
        }),
      }
    },
  }
}
