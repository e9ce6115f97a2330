import { Failure } from '../faults.ts'

/**
 * An expression, 1 where the condition holds; elsewhere its statement fails with 1690, the greatest integer plus one, in
 * whatever SQL mode, and the server runs nothing that follows it in the same text. A subquery of two rows would fail as
 * well, but costs as much as a read by primary key each time it is not evaluated.
 */
export const assertion = (condition: string): string => `IF(${condition}, 1, ~0 + 1)`

/**
 * An assertion as a select item. It has a name of its own: without one it would be named after the condition, and the
 * driver compiles a reader for each list of names.
 */
export const asserted = (condition: string): string => `${assertion(condition)} AS asserted`

/** The condition that the statement before matched so many rows. */
export const matched = (rows: number | '?'): string => `ROW_COUNT() = ${rows}`

/** Fails unless the statement before it matched so many rows. */
export const assertMatched = (rows: number): string => `SELECT ${asserted(matched(rows))}`

/** Whether an assertion failed. */
export const isFailedAssertion = (error: unknown): error is Failure => error instanceof Failure && error.number === 1690
