import type { Clock } from '../../clock.ts'
import { ApiError, badRequest } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Job } from '../../job.ts'
import type { Logger } from '../../log.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import type { SealedAccess } from '../../store/sealed/access.ts'
import { type Component, choose, chooseAny, combinedCheckValue } from '../kek/components.ts'
import { destroyKek, findKek, lackingGuards, makeKek, planKek, presentKek } from '../kek/kek.ts'
import type { Keks } from '../kek/keks.ts'
import type { KekSet } from '../kek/kekset.ts'
import {
  type KekPurpose,
  type KekRow,
  type KekState,
  kekProofsTable,
  kekPurposes,
  keksTable,
  materialsTable,
  systemKeysTable,
} from '../tables.ts'
import type { Alone } from './alone.ts'
import { Rewrapping } from './rewrapping.ts'

export interface RotationOptions {
  readonly hsm: Hsm
  readonly database: Database
  readonly keks: Keks
  readonly set: KekSet
  readonly clock: Clock
  readonly log: Logger
  readonly strict: boolean
  readonly cluster: string
  /** Records the database's state in this token. */
  anchor(): Promise<void>
}

/** `components`: custodians bring it to each token by `adopt`; otherwise the job generates it in the token. */
export type KekOrigin = 'generated' | 'components'

/** One KEK as an operator sees it. */
export interface KekStatus {
  readonly id: string
  readonly purpose: KekPurpose
  readonly state: KekState
  readonly origin: string
  /** Hexadecimal; '' while an announced KEK is not made. */
  readonly checkValue: string
  readonly createdAt: number
  /** Whether this node's token holds it. */
  readonly here: boolean
  /** Keys whose blobs are under it. */
  readonly keys: number
  /** Of a pending KEK: live workers that have not shown that their token holds it. */
  readonly unproven: readonly string[]
  /** Guards of strict mode that this node's token does not enforce on unwrapped keys; empty outside strict mode. */
  readonly lacking: readonly string[]
}

/** Longer than any transaction that may still store a key made under a KEK that is being destroyed. */
const graceMilliseconds = 60_000
/** How often a worker asks the token itself, in case somebody with the database keeps changes from its cache. */
const learnEveryMilliseconds = 60_000

/**
 * KEK rotation: announced by a command, done by a leased job. Nothing is wrapped by the new KEK before every live
 * worker has shown that its token holds it; then old blobs are rewrapped, online. Answers and versions do not change.
 */
export class Rotation {
  /** To be run by the worker that holds its lease. */
  readonly job: Job = { name: 'kek-rotation', everySeconds: 10, run: (signal, fence) => this.advance(signal, fence) }
  readonly #options: RotationOptions
  readonly #keks: SealedAccess<typeof keksTable>
  #learntAt = Number.NEGATIVE_INFINITY

  constructor(options: RotationOptions) {
    this.#options = options
    this.#keks = options.database.table(keksTable)
  }

  /**
   * Announces that a KEK is to be replaced.
   * @throws ApiError 400 while a rotation of that purpose is under way
   */
  announce(purpose: KekPurpose, origin: KekOrigin = 'generated'): Promise<KekRow> {
    return this.#options.set.change(async (tx, rows) => {
      if (isUnderWay(rows, purpose))
        throw badRequest(`a rotation of the ${purpose} KEK is under way (kek destroy of the pending one gives it up)`)
      return this.#announce(tx, rows, purpose, origin)
    })
  }

  /**
   * Announces at once that the KEKs of every purpose are to be replaced, but for those whose rotation is under way.
   * @throws ApiError 400 while all are
   */
  announceAll(origin: KekOrigin = 'generated'): Promise<readonly KekRow[]> {
    return this.#options.set.change(async (tx, rows) => {
      const announced: KekRow[] = []
      for (const purpose of kekPurposes.filter((one) => !isUnderWay(rows, one)))
        announced.push(await this.#announce(tx, rows, purpose, origin))
      if (announced.length === 0)
        throw badRequest('a rotation of every KEK is under way (kek destroy of a pending one gives it up)')
      return announced
    })
  }

  #announce(tx: Transaction, rows: readonly KekRow[], purpose: KekPurpose, origin: KekOrigin): Promise<KekRow> {
    const { clock, cluster, hsm } = this.#options
    if (!rows.some((row) => row.purpose === purpose && row.state === 'active'))
      throw new Error(`there is no active ${purpose} KEK`)
    const facts = { ...planKek(cluster, purpose), purpose, checkValue: Buffer.alloc(0), origin }
    const more = { mechanism: hsm.capabilities.kwp, state: 'pending', createdAt: clock.wall() }
    return this.#keks.insert(tx, { ...facts, ...more })
  }

  /**
   * Brings a KEK into this token from its custodians' components: one announced that way, or one that a node's own
   * token lacks. A run that was interrupted anywhere may be repeated.
   * @param given of a known KEK also those of other ceremonies; of a new one its own alone
   * @throws ApiError 400 when the components do not give the known key, give one of before, or not the one that the
   *   token holds, or when the KEK has none
   */
  async adopt(id: string, given: readonly Component[], alone: Alone): Promise<void> {
    const { hsm, set, strict } = this.#options
    const { rows } = await set.current()
    const row = rows.find((kek) => kek.id === id)
    if (row === undefined) throw badRequest(`there is no KEK ${id}`)
    requireComponents(row)
    // Before anything is made: a wrong object would have to be destroyed again, which an interruption prevents.
    const components = await chosenFor(row, rows, given)
    const wanted = combinedCheckValue(components)
    const plan = { id, ckaId: row.ckaId, purpose: row.purpose as KekPurpose }
    const present = await presentKek(hsm, plan)
    if (present === undefined) await alone()
    const { checkValue } = present ?? (await makeKek(hsm, plan, { components, strict }))
    if (!checkValue.equals(wanted)) {
      const [held, other] = [checkValue.toString('hex'), wanted.toString('hex')]
      throw badRequest(`the token holds the KEK ${id} with the check value ${held}, these components make ${other}`)
    }
    if (row.checkValue.length > 0) return
    try {
      await this.#record(id, checkValue)
    } catch (error) {
      // Given up or recorded meanwhile, as another key.
      if (error instanceof ApiError && error.status === 400 && present === undefined) {
        await alone()
        await destroyKek(hsm, row.ckaId)
      }
      throw error
    }
  }

  /** Has the job make announced KEKs again that were generated in a token that is gone. */
  async remakeAnnounced(): Promise<void> {
    const { hsm, set } = this.#options
    await set.change(async (tx, rows) => {
      for (const row of rows.filter(({ state, origin }) => state === 'pending' && origin === 'generated')) {
        const gone = row.checkValue.length > 0 && (await findKek(hsm, row.ckaId)) === undefined
        if (gone) await this.#keks.update(tx, row, { checkValue: Buffer.alloc(0) })
      }
    })
  }

  /**
   * Called by every worker every few seconds: shows that this token holds the pending KEKs, and learns the set's latest
   * change.
   * @throws DamagedRow when the database has gone back behind it
   */
  async prove(): Promise<void> {
    const { database, set, keks, clock, log } = this.#options
    if (clock.monotonic() - this.#learntAt > learnEveryMilliseconds) {
      await set.learn()
      this.#learntAt = clock.monotonic()
    }
    const proofs = database.table(kekProofsTable)
    for (const row of (await keks.list()).filter(({ state }) => state === 'pending')) {
      const proof = { kek: row.id, incarnation: database.incarnation }
      if (row.checkValue.length === 0 || (await database.read((q) => proofs.exists(q, proof)))) continue
      try {
        await keks.of(row).prove()
        await database.transaction((tx) => proofs.insert(tx, { ...proof, provenAt: clock.wall() }))
      } catch (error) {
        log.warn({ err: error, kek: row.id }, 'a pending KEK could not be proven on this token')
      }
    }
  }

  /**
   * One round of the job: makes announced KEKs, activates those that all have proven, rewraps blobs under old ones.
   * @throws Error at the end, naming keys that could not be rewrapped
   */
  async advance(signal: AbortSignal, fence: bigint): Promise<void> {
    const { hsm, set, strict } = this.#options
    const { rows } = await set.current()
    for (const row of rows.filter(({ state }) => state === 'pending')) {
      if (row.checkValue.length === 0 && row.origin === 'generated') {
        const plan = { id: row.id, ckaId: row.ckaId, purpose: row.purpose as KekPurpose }
        // An existing KEK is never destroyed: a crash may have left it, but it may also be in use by now, if this
        // worker was stopped for long or somebody has put an old row back.
        const made = (await presentKek(hsm, plan)) ?? (await makeKek(hsm, plan, { strict }))
        await this.#record(row.id, made.checkValue, fence)
      } else if (row.checkValue.length > 0 && (await this.#unproven(row.id)).length === 0)
        await this.#activate(row, fence)
    }
    // Strict mode's use KEK unwraps nothing that could be wrapped again: old versions stay under it.
    const movable = rows.filter(({ state, purpose }) => state === 'retiring' && !(strict && purpose === 'use'))
    const runs: PromiseSettledResult<void>[] = []
    // A KEK that cannot be left keeps no other one in use.
    for (const row of movable) {
      runs.push(...(await Promise.allSettled([this.#rewrapping(fence).run(row, signal)])))
    }
    const reasons = runs.flatMap((run) => (run.status === 'rejected' ? [run.reason] : []))
    if (reasons.length > 1) throw new AggregateError(reasons, reasons.map(String).join('; '))
    if (reasons.length > 0) throw reasons[0]
  }

  async status(): Promise<KekStatus[]> {
    const { set } = this.#options
    const { rows } = await set.current()
    const all: KekStatus[] = []
    // One at a time: there may be more KEKs than callers that a pool lets wait.
    for (const row of rows) all.push(await this.#statusOf(row))
    return all
  }

  async #statusOf({ id, purpose, state, origin, checkValue, createdAt, ckaId }: KekRow): Promise<KekStatus> {
    const { hsm, strict } = this.#options
    const found = await findKek(hsm, ckaId)
    return {
      id,
      purpose: purpose as KekPurpose,
      state: state as KekState,
      origin,
      checkValue: checkValue.toString('hex'),
      createdAt,
      here: found !== undefined,
      keys: await this.#references(id),
      unproven: state === 'pending' ? await this.#unproven(id) : [],
      lacking: found && strict && purpose === 'use' ? await lackingGuards(hsm, found) : [],
    }
  }

  /**
   * Destroys a retired KEK in this token; database dumps taken before this moment cannot be used any more. First no
   * more blobs may be stored under it; after a pause it is checked again, and only then destroyed. May be run again
   * after a crash. A KEK that is only announced is given up by it: nothing was ever under it.
   * @returns since when dumps can be used; undefined for a KEK that was only announced
   * @throws ApiError 400 while it is in use
   */
  async destroy(id: string, graceMs = graceMilliseconds): Promise<{ dumpsUsableSince: number | undefined }> {
    const { hsm, clock, set } = this.#options
    const before = (await set.current()).rows.find((kek) => kek.id === id)
    // While it is marked as destroyed, what is under it stays there.
    const inUse = before?.state === 'retiring' ? await this.#references(id) : 0
    if (inUse > 0) throw stillUsed(id, inUse)
    const isGivenUp = before?.state === 'pending' || before?.state === 'abandoned'
    const row = isGivenUp
      ? await this.#change(id, ['pending', 'abandoned'], 'abandoned')
      : await this.#change(id, ['retiring', 'destroyed'], 'destroyed')
    await clock.sleep(graceMs)
    const left = await this.#references(id)
    if (left > 0) {
      await this.#change(id, ['destroyed'], 'retiring')
      throw stillUsed(id, left)
    }
    await destroyKek(hsm, row.ckaId)
    return { dumpsUsableSince: isGivenUp ? undefined : clock.wall() }
  }

  async #activate({ id, purpose }: KekRow, fence: bigint): Promise<void> {
    const { set, log, anchor } = this.#options
    await set.change(async (tx, rows) => {
      await tx.fence(this.job.name, fence)
      const pending = rows.find((row) => row.id === id)
      const active = rows.find((row) => row.purpose === purpose && row.state === 'active')
      if (pending?.state !== 'pending' || active === undefined) return
      await this.#keks.update(tx, active, { state: 'retiring' })
      await this.#keks.update(tx, pending, { state: 'active' })
    })
    log.info({ kek: id, purpose }, 'a new KEK is in use')
    // Whatever the database says from now on, this token knows that the old one is retired.
    await anchor()
  }

  #record(id: string, checkValue: Buffer, fence?: bigint): Promise<KekRow> {
    return this.#options.set.change(async (tx, rows) => {
      if (fence !== undefined) await tx.fence(this.job.name, fence)
      const row = rows.find((kek) => kek.id === id)
      // Another run may have been faster, with the same key.
      if (row?.checkValue.equals(checkValue)) return row
      if (row?.state !== 'pending' || row.checkValue.length > 0)
        throw badRequest(`the KEK ${id} was recorded or given up meanwhile`)
      return this.#keks.update(tx, row, { checkValue })
    })
  }

  #change(id: string, from: readonly KekState[], to: KekState): Promise<KekRow> {
    return this.#options.set.change(async (tx, rows) => {
      const row = rows.find((kek) => kek.id === id)
      if (row === undefined || !from.includes(row.state as KekState)) {
        throw badRequest(`the KEK ${id} is ${row?.state ?? 'unknown'}, not ${from[0]}`)
      }
      return row.state === to ? row : this.#keks.update(tx, row, { state: to })
    })
  }

  async #unproven(id: string): Promise<string[]> {
    const { database } = this.#options
    const proofs = await database.read((q) =>
      database.table(kekProofsTable).list(q, { kek: id }, { by: 'incarnation', limit: 5000 }),
    )
    const proven = new Set(proofs.map(({ incarnation }) => incarnation))
    return (await database.incarnations()).filter((incarnation) => !proven.has(incarnation))
  }

  #references(kek: string): Promise<number> {
    const { database } = this.#options
    return database.read(
      async (q) =>
        (await database.table(materialsTable).count(q, { kek })) +
        (await database.table(systemKeysTable).count(q, { kek })),
    )
  }

  #rewrapping(fence: bigint): Rewrapping {
    return new Rewrapping({ ...this.#options, job: this.job.name, fence })
  }
}

/** @throws ApiError 400 when no components make the KEK, or it is not to be made again */
export function requireComponents({ id, state, origin, purpose }: KekRow): void {
  if (state === 'destroyed' || state === 'abandoned') throw badRequest(`the KEK ${id} is ${state}`)
  if (origin !== 'components')
    throw badRequest(`the ${state} ${purpose} KEK ${id} is generated in the token: no components make it`)
}

/**
 * The components that make the KEK.
 * @throws ApiError 400 when there are none among those given; for a new KEK, when those of another one are among them:
 * with all of them it would be a key of two ceremonies, which neither's envelopes alone bring back
 */
async function chosenFor(
  row: KekRow,
  rows: readonly KekRow[],
  given: readonly Component[],
): Promise<readonly Component[]> {
  const { id, purpose, checkValue } = row
  if (checkValue.length > 0) {
    const chosen = await choose(given, checkValue)
    if (chosen !== undefined) return chosen
    throw badRequest(`these components do not make the KEK ${id}: its check value is ${checkValue.toString('hex')}`)
  }
  const others = rows.filter(
    (other) => other.purpose === purpose && other.checkValue.length > 0 && other.state !== 'abandoned',
  )
  const known = await chooseAny(
    given,
    others.map((other) => other.checkValue),
  )
  if (known === undefined) return given
  const other = others.find((one) => one.checkValue.equals(known.checkValue))
  throw badRequest(
    `these components make the ${other?.state} ${purpose} KEK ${other?.id}: a new one is made of its own ceremony's alone`,
  )
}

const stillUsed = (id: string, keys: number): Error => badRequest(`${keys} keys are still under the KEK ${id}`)

const isUnderWay = (rows: readonly KekRow[], purpose: KekPurpose): boolean =>
  rows.some((row) => row.purpose === purpose && row.state === 'pending')
