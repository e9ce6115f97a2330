import type { Assumed } from '../coherence/increments.ts'
import { groupOf, leafOf } from '../coherence/leaves.ts'
import { Conflict, LeaseLost, notWriting, Outdated, tooLarge } from '../faults.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { Stored } from '../table.ts'
import { discarding, holding, isTallyName, totalOf } from '../tally.ts'
import { isFailedAssertion } from './assertion.ts'
import type { Answer, Committed, Connection, Opening } from './connection.ts'
import { literal, type Parameterised, type Statement, textOf, withLiterals } from './literal.ts'
import { isUnrecorded } from './outcomes.ts'
import { largestPending, lengthOf, PendingWrites } from './pending.ts'
import type { Named } from './rowwrites.ts'

/** A statement whose answer a caller waits for. */
interface Asked {
  readonly statement: Statement
  /** Runs it alone, prepared. */
  readonly alone: (connection: Connection) => Promise<Answer>
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

const noAnswer: Answer = { rows: [], matched: 0 }

/**
 * A `Reader` as store/ sees it: a lent connection, unusable once the work it was lent for has ended. Statements asked
 * for in the same turn go out together, in their order, the first ones together with the statements that open the
 * session (a transaction, the question whether the node takes writes). Later statements wait for those answers.
 */
export class Session implements Reader {
  readonly consistent: boolean
  #connection: Connection | undefined
  #opening: Opening | undefined
  #asked: Asked[] = []
  #round: Promise<unknown> = Promise.resolve()

  constructor(connection: Connection, opening: Opening, consistent: boolean) {
    this.#connection = connection
    this.#opening = opening
    this.consistent = consistent
  }

  static of(q: Reader): Session {
    if (q instanceof Session) return q
    throw new TypeError('not a reader of this database')
  }

  protected get connection(): Connection {
    if (!this.#connection) throw new Error('a reader was used after its work had ended: something was not awaited')
    return this.#connection
  }

  /** Whether anything was sent. */
  get opened(): boolean {
    return this.#opening === undefined
  }

  /** Takes the opening that is still to be sent, if there is one; from now on it counts as sent. */
  protected open(): Opening | undefined {
    const opening = this.#opening
    this.#opening = undefined
    return opening
  }

  async rows(sql: string, values: readonly Stored[] = []): Promise<Stored[][]> {
    const alone = async (connection: Connection) => ({ rows: await connection.rows(sql, values), matched: 0 })
    return (await this.ask({ sql, values }, alone)).rows
  }

  /** Sends a statement together with all others asked for in the same turn. */
  protected ask(statement: Statement, alone: Asked['alone']): Promise<Answer> {
    void this.connection // throws when the work has ended
    return new Promise((resolve, reject) => {
      this.#asked.push({ statement, alone, resolve, reject })
      if (this.#asked.length === 1) queueMicrotask(() => this.#answerAsked())
    })
  }

  /**
   * One round trip at a time, and none after a failed one: the server may have ended the transaction, and would run
   * later statements each in its own.
   */
  protected inTurn<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const round = this.#round.then(() => work(this.connection))
    round.catch(() => undefined)
    this.#round = round
    return round
  }

  async #answerAsked(): Promise<void> {
    let asked: readonly Asked[] = []
    try {
      await this.inTurn(async (connection) => {
        asked = this.#asked.splice(0)
        const [first] = asked
        if (first && asked.length === 1 && this.preparable) return first.resolve(await first.alone(connection))
        const answers = await this.send(asked.map(({ statement }) => withLiterals(statement)))
        for (const [index, { resolve }] of asked.entries()) resolve(answers[index] ?? noAnswer)
      })
    } catch (error) {
      for (const { reject } of [...asked, ...this.#asked.splice(0)]) reject(error)
    }
  }

  /** Whether a statement may go out alone. */
  protected get preparable(): boolean {
    return this.opened
  }

  /** Sends statements in one round trip, after those that open the session. Only within `inTurn`. */
  protected send(statements: readonly string[]): Promise<readonly Answer[]> {
    const opening = this.open()
    return opening === undefined ? this.connection.script(statements) : this.connection.open(opening, statements)
  }

  /** Nothing is sent any more. Resolves when nothing is under way. */
  async end(): Promise<void> {
    this.#connection = undefined
    await this.#round.catch(() => undefined)
  }
}

/** Room for the rest of the longest statement's packet: the server refuses a longer one, or closes the connection. */
const otherBytes = largestPending + 2 ** 16

/** A `Transaction` as store/ sees it. Its writes go out together: before its next read, or at its end. */
export class WriteSession extends Session implements Transaction {
  readonly #leaves = new Set<number>()
  readonly #tallies = new Map<string, number>()
  readonly #heldTallies = new Set<string>()
  readonly #rows = new WeakSet<object>()
  readonly #held = new WeakSet<object>()
  /** Versions that leaves are assumed to have until this transaction increments them, and the bases of their groups. */
  readonly #stamps = new Map<number, number>()
  readonly #bases = new Map<number, number>()
  readonly #pending = new PendingWrites()
  #wrote = false
  readonly #calls: ((leaves: ReadonlyMap<number, number>) => void)[] = []
  #afterwards: readonly (() => Promise<void>)[] | undefined

  static override of(tx: Transaction): WriteSession {
    if (tx instanceof WriteSession) return tx
    throw new TypeError('not a transaction of this database')
  }

  /** Work to do once it is committed. */
  get afterwards(): readonly (() => Promise<void>)[] | undefined {
    return this.#afterwards
  }

  onCommit(work: () => Promise<void>): void {
    this.#afterwards = [...(this.#afterwards ?? []), work]
  }

  /** Whether there is anything to commit. */
  get wrote(): boolean {
    return this.#wrote
  }

  /** The touched leaves, in the order in which every transaction increments them. */
  get leaves(): number[] {
    return [...this.#leaves].sort((a, b) => a - b)
  }

  /** Runs a statement at once; returns the number of rows that matched. */
  async run(sql: string, values: readonly Stored[]): Promise<number> {
    this.#wrote = true
    const alone = async (connection: Connection) => ({ rows: [], matched: await connection.run(sql, values) })
    return (await this.ask({ sql, values }, alone)).matched
  }

  protected override get preparable(): boolean {
    return super.preparable && this.#pending.none
  }

  /** Runs a statement together with the next ones. Where a unique key is taken the transaction fails there. */
  write(table: string, statement: Statement): Promise<void> {
    const text = withLiterals(statement)
    return this.#wait(text.length, () => this.#pending.add(table, text))
  }

  /**
   * As write: replaces a row that this transaction owns.
   * @param names of its columns: the same array for the same columns
   * @param unmatched makes the error with which the transaction fails if the row has another rev
   * @throws ApiError 400 for a row that no packet of the database could take
   */
  replace(
    table: string,
    names: readonly string[],
    { id, rev, values }: Named & { readonly values: readonly Stored[] },
    unmatched?: () => Error,
  ): Promise<void> {
    const texts = values.map(literal)
    const length = texts.reduce((sum, text) => sum + text.length, 0)
    return this.#wait(length, () => this.#pending.update(table, names, { id, rev, values: texts }, unmatched))
  }

  /** As replace: removes it. */
  remove(table: string, { id, rev }: Named, unmatched?: () => Error): Promise<void> {
    return this.#wait(0, () => this.#pending.remove(table, { id, rev }, unmatched))
  }

  /**
   * As write: inserts a row.
   * @param into `INSERT INTO … VALUES`
   * @throws ApiError 400 for a row that no packet of the database could take
   */
  insert(table: string, into: string, values: readonly Stored[]): Promise<void> {
    const row = values.map(literal)
    return this.#wait(into.length + lengthOf(row), () => this.#pending.insert(table, into, row))
  }

  async #wait(length: number, add: () => void): Promise<void> {
    void this.connection // throws when the work has ended
    this.#wrote = true
    if (length > this.connection.packetBytes - otherBytes) throw tooLarge()
    add()
    // Of two writes that wait for their turn the first sends both; an empty text is no statement.
    if (this.#pending.full) await this.inTurn(async () => void (!this.#pending.none && (await this.send([]))))
  }

  /**
   * Sends the pending statements, the record of the outcome and then `last`, and commits, in one round trip if the
   * transaction is open or there is no other node.
   * @param record `recordOutcome` with what the statement before it must have matched
   * @param next as for `Connection.commit`
   * @throws Outdated when an assertion of `record` or `last` fails
   */
  commit(
    record: (matching?: number) => Parameterised,
    last: readonly (string | Parameterised)[],
    next?: string,
  ): Promise<Committed> {
    return this.inTurn(async (connection) => {
      // Where there is another node to turn to, a silent one must not leave the outcome of the COMMIT open.
      if (!(this.opened || connection.target.alone)) {
        const answers = await this.send([record(), ...last].map(textOf))
        const committed = await connection.commit([], { opened: true, next })
        return { ...committed, given: answers.map(({ rows }) => rows).filter((rows) => rows.length > 0) }
      }
      const { statements, explain, matching } = this.#pending.take(connection.hurried)
      const { opened } = this
      this.open()
      try {
        return await connection.commit([...statements, record(matching), ...last], { opened, next })
      } catch (error) {
        throw explained(explain(error), statements.length)
      }
    })
  }

  /** Pending statements go first. */
  protected override async send(more: readonly string[]): Promise<readonly Answer[]> {
    const { statements, explain } = this.#pending.take()
    try {
      const answers = await super.send([...statements.map(textOf), ...more])
      return answers.slice(statements.length)
    } catch (error) {
      throw explained(explain(error), statements.length)
    }
  }

  touch(table: string, id: string): void {
    void this.connection // throws when the work has ended
    this.#leaves.add(leafOf(table, id))
    this.#wrote = true
  }

  get assumed(): Assumed {
    return { stamps: this.#stamps, bases: this.#bases }
  }

  /** The counts added, by name. */
  get tallies(): ReadonlyMap<string, number> {
    return this.#tallies
  }

  tally(name: string, delta: number): void {
    void this.connection
    if (!isTallyName(name) || !Number.isSafeInteger(delta)) throw new TypeError(`no tally: ${name} ${delta}`)
    this.#tallies.set(name, (this.#tallies.get(name) ?? 0) + delta)
    this.#wrote ||= delta !== 0
  }

  async holdTally(name: string): Promise<void> {
    const { sql, values } = holding(name)
    await this.run(sql, values)
    this.#heldTallies.add(name)
    this.tally(name, -1)
  }

  async tallied(name: string): Promise<number> {
    return (await totalOf(this, name)) - (this.#heldTallies.has(name) ? 1 : 0)
  }

  /** Registers a call after the COMMIT with the new versions of the leaves; with an empty map when they were lost. */
  onVersions(call: (leaves: ReadonlyMap<number, number>) => void): void {
    this.#calls.push(call)
  }

  /** Makes the calls that wait for the COMMIT. */
  tellVersions(leaves: readonly (readonly [number, number])[]): void {
    const versions = new Map(leaves)
    for (const call of this.#calls) call(versions)
  }

  discardTallies(prefix: string): Promise<void> {
    return this.write('tallies', discarding(prefix))
  }

  /** A write, not only a read, so that a take-over elsewhere in the cluster conflicts with this transaction. */
  async fence(job: string, fence: bigint, place?: string): Promise<void> {
    const set = place === undefined ? '' : ', place = ?'
    const sql = `UPDATE job_leases SET beats = beats + 1${set} WHERE name = ? AND fence = ?`
    const values = [...(place === undefined ? [] : [place]), job, String(fence)]
    if ((await this.run(sql, values)) === 0) throw new LeaseLost(job)
  }

  /** Remembers a row as read or written here; `held`: no other transaction can change it before this one ends. */
  adopt<R extends object>(row: R, held = false): R {
    this.#rows.add(row)
    if (held) this.#held.add(row)
    return row
  }

  /**
   * Adopts a row that was not read here but is assumed to be unchanged: the transaction locks it first, and fails with
   * Outdated if it has changed.
   */
  assume(table: string, row: { readonly id: string; readonly rev: number }): void {
    this.#pending.assume(table, row)
    this.adopt(row, true)
  }

  /**
   * Touches the leaf. The transaction fails with Outdated unless it is the first to touch it since it had this version.
   * @param base the version of its group that counts for it
   */
  assumeStamp(leaf: number, v: number, base: number): void {
    void this.connection
    const group = groupOf(leaf)
    if ((this.#stamps.get(leaf) ?? v) !== v || (this.#bases.get(group) ?? base) !== base) throw new Outdated()
    this.#stamps.set(leaf, v)
    this.#bases.set(group, base)
    this.#leaves.add(leaf)
    this.#wrote = true
  }

  /** Makes the error of a change that finds another row in place of this one; undefined for a row that none can change. */
  changedFault(row: object): (() => Error) | undefined {
    return this.#held.has(row) ? undefined : () => new Conflict()
  }

  /** Forgets a row that was replaced or removed: a second change would match nothing, unnoticed if the row was held. */
  disown(row: object): void {
    this.#rows.delete(row)
  }

  /** Whether the row was read or written here: a row from a cache or from another transaction may be out of date. */
  owns(row: object): boolean {
    return this.#rows.has(row)
  }
}

/**
 * An assertion without a meaning of its own is about versions that were assumed.
 * @param pending the number of pending statements, which were sent before the record of the outcome
 */
function explained(error: unknown, pending: number): unknown {
  if (isUnrecorded(error) && error.done === pending) return notWriting()
  return isFailedAssertion(error) ? new Outdated() : error
}
