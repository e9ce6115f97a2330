import { ApiError, badRequest, unavailable } from '../errors.ts'

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

/** A unique key is taken. A transaction that reads was repeated once before this is thrown, so that it could decide. */
export class DuplicateRow extends Error {
  readonly table: string

  constructor(table: string, cause: unknown) {
    super(`${table}: a row with this key exists`, { cause })
    this.name = 'DuplicateRow'
    this.table = table
  }
}

/** Another process has taken over the job's lease: the job stops, and its transaction changed nothing. */
export class LeaseLost extends Error {
  constructor(job: string) {
    super(`the lease of ${job} was taken over`)
    this.name = 'LeaseLost'
  }
}

/** The row has changed since it was read: the transaction is repeated. Never leaves store/. */
export class Conflict extends Error {}

/** What a transaction assumed without reading it has changed: nothing was committed. It is not repeated as it is. */
export class Outdated extends Error {}

/** 503: the database could not say in time whether the write was committed. Read before repeating it. */
export class UnknownOutcome extends ApiError {
  constructor(cause: unknown) {
    super(503, 'the database did not say whether this change was made: read before repeating it', { cause })
    this.name = 'UnknownOutcome'
  }
}

/**
 * Server errors after which the same work may succeed: 1213 deadlock, or Galera's certification; 1205 lock wait; 1020
 * changed since the snapshot; 3100, 3101 Group Replication; 1615 statement to be prepared again; 1317 interrupted;
 * 1969, 3024 longer than the server's limit for a statement (MariaDB, MySQL); 1461 no room for another prepared
 * statement on this server now; 3797 the wait for earlier commits of the group failed.
 */
const passing = new Set([1213, 1205, 1020, 3100, 3101, 1615, 1317, 1969, 3024, 1461, 3797])

/**
 * Server errors after which the connection, or the node, cannot be used: 1047 not in the quorum; 1180 error during
 * COMMIT; 1053 shutting down; 1927, 4031 connection killed; 1040, 1203, 1226 too many connections; 1290, 1836 read
 * only; 3032 offline mode, in which a member of MySQL 8.4 leaves its group; 3796 a group member that is not ONLINE and
 * cannot wait for earlier commits.
 */
const lost = new Set([1047, 1180, 1053, 1927, 4031, 1040, 1203, 1226, 1290, 1836, 3032, 3796])

/** Errors of COMMIT that mean nothing was committed. Any other error leaves the outcome open. */
const refusedCommit = new Set([1213, 3101])

/** Of the passing ones, those that another form of the same statements does not avoid. */
const conclusive = new Set([1213, 1205, 1020, 1317, 1969])

/** An error reported by the driver: the server's error number, or 0 when the connection failed or stayed silent. */
export class Failure extends Error {
  readonly number: number
  /** Of a script: the number of statements answered before the one that failed. */
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
 * No answer in time. The connection is given up. The node is avoided only if the statement was a question about the
 * node itself: any other may have been too much work.
 */
export class TimedOut extends Failure {
  readonly aboutNode: boolean

  constructor(milliseconds: number, aboutNode: boolean) {
    super(new Error(`no answer within ${milliseconds} ms`))
    this.aboutNode = aboutNode
  }
}

/** The node answers, but its state may be old: a copy, a demoted primary, a member that left its cluster. */
export const notWriting = (): Failure =>
  new Failure(Object.assign(new Error('the database node takes no writes'), { errno: 1290 }))

const numberOf = (error: unknown): number => (error instanceof Failure ? error.number : -1)

/** Whether the connection itself cannot be used any more. */
export const isLost = (error: unknown): boolean => numberOf(error) === 0 || lost.has(numberOf(error))

/** Whether the connection's node is to be avoided. */
export const isNodeLost = (error: unknown): boolean => isLost(error) && !(error instanceof TimedOut && !error.aboutNode)

/** Whether the same work may succeed when it is repeated whole, on this node or another. */
export const isPassing = (error: unknown): boolean =>
  error instanceof Conflict || passing.has(numberOf(error)) || isLost(error)

/** Whether an error of COMMIT means that nothing was committed. */
export const isRefusedCommit = (error: unknown): boolean => refusedCommit.has(numberOf(error))

/**
 * Whether a transaction that failed so is better begun anew than made once more at once: after a wait for a lock, a
 * deadlock, an interruption, or with its connection.
 */
export const isConclusive = (error: Failure): boolean => conclusive.has(error.number) || isLost(error)

/** 1062: the unique key is taken. */
export const isDuplicate = (error: unknown): boolean => numberOf(error) === 1062

/** 1205, 3572: a row that was to be locked without waiting is locked by another transaction (MariaDB, MySQL). */
export const isHeldElsewhere = (error: unknown): boolean => numberOf(error) === 1205 || numberOf(error) === 3572

/** 1406: a value longer than its column; 1153: a statement longer than the server's packets. */
export const isTooLarge = (error: unknown): boolean => numberOf(error) === 1406 || numberOf(error) === 1153

/** 400: only data from a caller makes a row too long. */
export const tooLarge = (cause?: unknown): ApiError =>
  badRequest('the object is too large for the database: send less of it', { cause })

/** 503 after the deadline. */
export const busy = (cause: unknown): ApiError => unavailable('the database is busy or out of reach', { cause })
