import { ApiError, unavailable } from '../errors.ts'

/**
 * A row that must not be used: its MAC is wrong, its head does not list it, or it is not the row that was asked for.
 */
export class DamagedRow extends Error {
  readonly table: string
  readonly id: string

  constructor(table: string, id: string, reason: string) {
    super(`${table} ${id}: ${reason}`)
    this.name = 'DamagedRow'
    this.table = table
    this.id = id
  }
}

/** A unique key is taken. The transaction was repeated once before this is thrown, so that it could read and decide. */
export class DuplicateRow extends Error {
  readonly table: string

  constructor(table: string, cause: unknown) {
    super(`${table}: a row with this key exists`, { cause })
    this.name = 'DuplicateRow'
    this.table = table
  }
}

/** The job's lease is somebody else's by now: the job stops, and its transaction changed nothing. */
export class LeaseLost extends Error {
  constructor(job: string) {
    super(`the lease of ${job} was taken over`)
    this.name = 'LeaseLost'
  }
}

/** The row changed since it was read: the transaction is repeated. Never leaves store/. */
export class Conflict extends Error {}

/** 503 of a write of which the database could not say in time whether it was committed. Not to be repeated unread. */
export class UnknownOutcome extends ApiError {
  constructor(cause: unknown) {
    super(503, 'the database did not say whether this change was made: read before repeating it', { cause })
    this.name = 'UnknownOutcome'
  }
}

/**
 * Server errors after which the same work may succeed: 1213 deadlock, or Galera's certification; 1205 lock wait; 1020
 * changed since the snapshot; 3100, 3101 Group Replication; 1615 statement to be prepared again; 1317 interrupted; 1969,
 * 3024 longer than the server lets a statement take (MariaDB, MySQL).
 */
const passing = new Set([1213, 1205, 1020, 3100, 3101, 1615, 1317, 1969, 3024])

/**
 * Server errors after which the connection, or the node, is of no more use: 1047 not in the quorum; 1180 error during
 * COMMIT; 1053 shutting down; 1927, 4031 connection killed; 1040, 1203, 1226 too many connections; 1290, 1836 read only.
 */
const lost = new Set([1047, 1180, 1053, 1927, 4031, 1040, 1203, 1226, 1290, 1836])

/** COMMIT answered that nothing was committed. Any other error of COMMIT leaves it open. */
const refusedCommit = new Set([1213, 3101])

/** What the driver reported: the server's error number, or 0 when the connection failed or stayed silent. */
export class Failure extends Error {
  readonly number: number
  /** Of a script: how many statements were answered before the one that failed. */
  readonly done: number | undefined

  constructor(error: unknown, done?: number) {
    super(error instanceof Error ? error.message : String(error), { cause: error })
    this.name = 'Failure'
    const errno = error instanceof Error && 'errno' in error && typeof error.errno === 'number' ? error.errno : 0
    this.number = Math.max(0, errno)
    this.done = done
  }
}

/**
 * No answer in time. The connection is given up; the node is not, unless it was asked about itself: any other statement may
 * have been too much work.
 */
export class TimedOut extends Failure {
  readonly aboutNode: boolean

  constructor(milliseconds: number, aboutNode: boolean) {
    super(new Error(`no answer within ${milliseconds} ms`))
    this.aboutNode = aboutNode
  }
}

/** The node answers, but from a state that may be old: a copy, a demoted primary, a member that left its cluster. */
export const notWriting = (): Failure =>
  new Failure(Object.assign(new Error('the database node takes no writes'), { errno: 1290 }))

const numberOf = (error: unknown): number => (error instanceof Failure ? error.number : -1)

/** Whether the connection itself is of no more use. */
export const isLost = (error: unknown): boolean => numberOf(error) === 0 || lost.has(numberOf(error))

/** Whether the node that the connection leads to is to be avoided. */
export const isNodeLost = (error: unknown): boolean => isLost(error) && !(error instanceof TimedOut && !error.aboutNode)

/** Whether the same work may succeed when it is repeated whole, on this node or another. */
export const isPassing = (error: unknown): boolean =>
  error instanceof Conflict || passing.has(numberOf(error)) || isLost(error)

/** Whether an error of COMMIT is a plain no. */
export const isRefusedCommit = (error: unknown): boolean => refusedCommit.has(numberOf(error))

/** 1062: a unique key is taken. */
export const isDuplicate = (error: unknown): boolean => numberOf(error) === 1062

/** 503 after the deadline. */
export const busy = (cause: unknown): ApiError => unavailable('the database is busy or out of reach', { cause })
