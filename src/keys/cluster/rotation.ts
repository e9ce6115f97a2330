import type { Clock } from '../../clock.ts'
import type { Job } from '../../engine.ts'
import { badRequest } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Logger } from '../../log.ts'
import type { Database } from '../../store/database.ts'
import type { SealedAccess } from '../../store/sealed/access.ts'
import type { Component } from '../kek/components.ts'
import { destroyKek, findKek, makeKek, planKek, presentKek } from '../kek/kek.ts'
import type { Keks } from '../kek/keks.ts'
import {
  type KekPurpose,
  type KekRow,
  type KekState,
  kekProofsTable,
  keksTable,
  materialsTable,
  systemKeysTable,
} from '../tables.ts'
import { Rewrapping } from './rewrapping.ts'

export interface RotationOptions {
  readonly hsm: Hsm
  readonly database: Database
  readonly keks: Keks
  readonly clock: Clock
  readonly log: Logger
  readonly strict: boolean
  readonly cluster: string
}

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
}

/** Longer than any transaction that may still store a key made under a KEK that is being destroyed. */
const graceMilliseconds = 60_000
const page = { by: 'id', limit: 500 } as const

/**
 * KEK rotation: announced by a command, done by a leased job. Nothing is wrapped by the new KEK before every live worker has
 * shown that its token holds it; then old blobs are wrapped anew, online. Answers and versions do not change.
 */
export class Rotation {
  /** To be run by whoever holds its lease. */
  readonly job: Job = { name: 'kek-rotation', everySeconds: 10, run: (signal, fence) => this.advance(signal, fence) }
  readonly #options: RotationOptions
  readonly #keks: SealedAccess<typeof keksTable>

  constructor(options: RotationOptions) {
    this.#options = options
    this.#keks = options.database.table(keksTable)
  }

  /**
   * Writes down that a KEK is to be replaced.
   * @param origin `components`: custodians bring it to each token by `adopt`; otherwise the job has it born in the token
   * @throws ApiError 400 while a rotation of that purpose is under way
   */
  announce(purpose: KekPurpose, origin: 'generated' | 'components' = 'generated'): Promise<KekRow> {
    const { database, clock, cluster, hsm } = this.#options
    const { id, ckaId } = planKek(cluster, purpose)
    return database.transaction(async (tx) => {
      if (await this.#keks.find(tx, { purpose, state: 'pending' })) {
        throw badRequest(`a rotation of the ${purpose} KEK is under way`)
      }
      const active = await this.#keks.find(tx, { purpose, state: 'active' })
      if (active === undefined) throw new Error(`there is no active ${purpose} KEK`)
      // Of two that announce at the same time, the later one meets the changed revision and then the pending row.
      await this.#keks.update(tx, active, {})
      const checkValue = Buffer.alloc(0)
      const facts = { id, purpose, ckaId, checkValue, origin, mechanism: hsm.capabilities.kwp }
      return this.#keks.insert(tx, { ...facts, state: 'pending', createdAt: clock.wall() })
    })
  }

  /**
   * Brings a KEK into this token from its custodians' components: one that was announced so, or on a node whose own token lacks one.
   * @throws Error when the components give another key than the one that is known
   */
  async adopt(id: string, components: readonly Component[]): Promise<void> {
    const { hsm, database, strict } = this.#options
    const row = await database.read((q) => this.#keks.get(q, id))
    if (row === undefined) throw badRequest(`there is no KEK ${id}`)
    if ((await findKek(hsm, row.ckaId)) !== undefined) throw badRequest(`the token holds the KEK ${id} already`)
    const plan = { id, ckaId: row.ckaId, purpose: row.purpose as KekPurpose }
    const made = await makeKek(hsm, plan, { components, strict })
    if (row.checkValue.length > 0 && !row.checkValue.equals(made.checkValue)) {
      await destroyKek(hsm, row.ckaId)
      throw badRequest(
        `these components do not make the KEK ${id}: its check value is ${row.checkValue.toString('hex')}`,
      )
    }
    if (row.checkValue.length === 0) await this.#record(id, made.checkValue)
  }

  /** KEKs that were announced and born in a token that is gone: the job makes them anew. */
  async remakeAnnounced(): Promise<void> {
    const { hsm, database } = this.#options
    await database.transaction(async (tx) => {
      for (const row of await this.#keks.list(tx, { state: 'pending', origin: 'generated' }, page)) {
        const gone = row.checkValue.length > 0 && (await findKek(hsm, row.ckaId)) === undefined
        if (gone) await this.#keks.update(tx, row, { checkValue: Buffer.alloc(0) })
      }
    })
  }

  /** Every worker, every few seconds: shows that this token holds the pending KEKs. */
  async prove(): Promise<void> {
    const { database, keks, clock, log } = this.#options
    const pending = await database.read((q) => this.#keks.list(q, { state: 'pending' }, page))
    const proofs = database.table(kekProofsTable)
    for (const row of pending) {
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

  /** One round of the job: makes what was announced, takes into use what all have proven, wraps anew what is under old ones. */
  async advance(signal: AbortSignal, fence: bigint): Promise<void> {
    const { database, hsm, strict } = this.#options
    const rows = await database.read((q) => this.#keks.list(q, {}, page))
    for (const row of rows.filter(({ state }) => state === 'pending')) {
      if (row.checkValue.length === 0 && row.origin === 'generated') {
        const plan = { id: row.id, ckaId: row.ckaId, purpose: row.purpose as KekPurpose }
        // What is there is never destroyed: a crash may have left it, but it may as well be in use by now, when this worker
        // was stopped for long or somebody has put an old row back.
        const made = (await presentKek(hsm, plan)) ?? (await makeKek(hsm, plan, { strict }))
        await this.#record(row.id, made.checkValue, fence)
      } else if (row.checkValue.length > 0 && (await this.#unproven(row.id)).length === 0)
        await this.#activate(row, fence)
    }
    for (const row of rows.filter(({ state }) => state === 'retiring')) {
      // Strict mode's use KEK unwraps nothing that could be wrapped again: old versions stay under it.
      if (!strict || row.purpose !== 'use') await this.#rewrapping(fence).run(row, signal)
    }
  }

  async status(): Promise<KekStatus[]> {
    const { database, hsm } = this.#options
    const rows = await database.read((q) => this.#keks.list(q, {}, page))
    return Promise.all(
      rows.map(async ({ id, purpose, state, origin, checkValue, createdAt, ckaId }) => ({
        id,
        purpose: purpose as KekPurpose,
        state: state as KekState,
        origin,
        checkValue: checkValue.toString('hex'),
        createdAt,
        here: (await findKek(hsm, ckaId)) !== undefined,
        keys: await this.#references(id),
        unproven: state === 'pending' ? await this.#unproven(id) : [],
      })),
    )
  }

  /**
   * Destroys a retired KEK in this token; database dumps taken before this moment cannot be used any more. It is first closed to
   * what may still be stored under it, then waits, looks again, and only then is gone. May be run again after a crash.
   * @throws ApiError 400 while it is in use
   */
  async destroy(id: string, graceMs = graceMilliseconds): Promise<{ dumpsUsableSince: number }> {
    const { hsm, clock } = this.#options
    const row = await this.#change(id, ['retiring', 'destroyed'], 'destroyed')
    await clock.sleep(graceMs)
    const left = await this.#references(id)
    if (left > 0) {
      await this.#change(id, ['destroyed'], 'retiring')
      throw badRequest(`${left} keys are still under the KEK ${id}`)
    }
    await destroyKek(hsm, row.ckaId)
    return { dumpsUsableSince: clock.wall() }
  }

  async #activate(row: KekRow, fence: bigint): Promise<void> {
    const { database, keks, log } = this.#options
    await database.transaction(async (tx) => {
      await tx.fence(this.job.name, fence)
      const pending = await this.#keks.get(tx, row.id)
      const active = await this.#keks.find(tx, { purpose: row.purpose, state: 'active' })
      if (pending?.state !== 'pending' || active === undefined) return
      await this.#keks.update(tx, active, { state: 'retiring' })
      await this.#keks.update(tx, pending, { state: 'active' })
      keks.touchActive(tx, row.purpose)
    })
    log.info({ kek: row.id, purpose: row.purpose }, 'a new KEK is in use')
  }

  #record(id: string, checkValue: Buffer, fence?: bigint): Promise<KekRow> {
    return this.#options.database.transaction(async (tx) => {
      if (fence !== undefined) await tx.fence(this.job.name, fence)
      const row = await this.#keks.get(tx, id)
      if (row?.state !== 'pending' || row.checkValue.length > 0) throw new Error(`the KEK ${id} was recorded already`)
      return this.#keks.update(tx, row, { checkValue })
    })
  }

  #change(id: string, from: readonly KekState[], to: KekState): Promise<KekRow> {
    return this.#options.database.transaction(async (tx) => {
      const row = await this.#keks.get(tx, id)
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
