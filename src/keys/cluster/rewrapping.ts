import { ApiError } from '../../errors.ts'
import { CKK } from '../../hsm/constants.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import type { Page, SealedAccess } from '../../store/sealed/access.ts'
import { column, defineTable, type Row, type Table } from '../../store/table.ts'
import type { Kek, Keks } from '../kek/keks.ts'
import { blobTemplate } from '../live/blobs.ts'
import { Material } from '../material.ts'
import { type KekPurpose, type KekRow, materialsTable, systemKeysTable } from '../tables.ts'
import { hasKeys } from './haskeys.ts'

const batch = 50
/** The most ids that an error names. */
const mostNamed = 10

/** The columns that are read unverified, so that a damaged row does not hide the others of its page. */
const traces = { id: column.text(), kek: column.text() }
const materialBlobs = defineTable(materialsTable.name, traces, { sealed: false })
const systemKeyBlobs = defineTable(systemKeysTable.name, traces, { sealed: false })

/** A blob to rewrap. */
interface Wrapped {
  readonly id: string
  readonly rev: number
  readonly blob: Buffer
  /** @throws Error for a key that this program does not know */
  template(): KeyTemplate
}

type Anew = ReadonlyMap<string, { readonly rev: number; readonly changes: Rewrapped }>

interface Versioned {
  readonly id: string
  readonly rev: number
}

/** A table of keys that are wrapped. */
interface BlobTable<R extends Versioned> {
  sound(tx: Transaction, ids: readonly string[]): Promise<readonly R[]>
  update(tx: Transaction, row: R, changes: Rewrapped): Promise<unknown>
}

/** The two KEKs, and the ids of the rows that stay under the old one. */
interface Passage {
  readonly from: Kek
  readonly to: Kek
  readonly left: string[]
  /** The token's error for the first row that it refused; undefined if all rows left are damaged. */
  cause: unknown
}

/**
 * Rewraps keys from a retiring KEK to the active one, inside the token: each is unwrapped as a sensitive session object
 * that can only be wrapped. Each batch is a transaction; an interrupted run resumes with the rows that still name the
 * old KEK. Caches may keep old blobs: they open until the KEK is destroyed, and are then read again.
 */
export class Rewrapping {
  readonly #options: { hsm: Hsm; database: Database; keks: Keks; job: string; fence: bigint }

  constructor(options: { hsm: Hsm; database: Database; keks: Keks; job: string; fence: bigint }) {
    this.#options = options
  }

  /**
   * Rows that are damaged, or that the token refuses, stay under the old KEK and keep no others there.
   * @throws Error after all others, naming the rows that stay; ApiError 503 at once while the token is lost
   */
  async run(old: KekRow, signal: AbortSignal): Promise<void> {
    const { keks, database } = this.#options
    // A token that is new to the cluster was given the KEKs that are needed, and no other ones.
    if (!(await hasKeys(database, old.id))) return
    const [from, to] = [keks.of(old), await keks.active(old.purpose as KekPurpose)]
    // Else a KEK that the token lacks would look like a fault of every row.
    await from.prove()
    await to.prove()
    const passage: Passage = { from, to, left: [], cause: undefined }
    await this.#systemKeys(passage)
    for (let after = ''; !signal.aborted; ) {
      const last = await this.#materials(passage, after)
      if (last === undefined) break
      after = last
    }
    if (passage.left.length > 0) throw staying(old, passage)
  }

  async #systemKeys(passage: Passage): Promise<void> {
    const table = this.#options.database.table(systemKeysTable)
    const { ids, rows } = await this.#page(systemKeyBlobs, table, passage.from, { by: 'id', limit: 100 })
    const template = (): KeyTemplate => ({ class: 'secret', keyType: CKK.GENERIC_SECRET, usages: [] })
    const blobs = rows.map(({ id, rev, blob }) => ({ id, rev, blob, template }))
    passage.left.push(...missing(ids, rows))
    await this.#store(table, await this.#rewrap(passage, blobs))
  }

  /** @returns the last id of the batch; undefined after the last batch */
  async #materials(passage: Passage, after: string): Promise<string | undefined> {
    const table = this.#options.database.table(materialsTable)
    const { ids, rows } = await this.#page(materialBlobs, table, passage.from, { by: 'id', after, limit: batch })
    if (ids.length === 0) return undefined
    const blobs = rows.flatMap((row) => {
      const { id, rev, blob } = row
      return blob === null ? [] : [{ id, rev, blob, template: () => blobTemplate(new Material(row)) }]
    })
    passage.left.push(...missing(ids, rows))
    await this.#store(table, await this.#rewrap(passage, blobs))
    return ids.at(-1)
  }

  /** The ids under a KEK, and those of their rows that are sound. */
  #page<T extends Table>(
    unverified: typeof materialBlobs,
    table: SealedAccess<T>,
    { row: { id: kek } }: Kek,
    page: Page<typeof materialBlobs>,
  ): Promise<{ ids: string[]; rows: Row<T>[] }> {
    const { database } = this.#options
    return database.snapshot(async (q) => {
      const ids = (await database.unverified(unverified).list(q, { kek }, page)).map(({ id }) => id)
      return { ids, rows: await table.sound(q, ids) }
    })
  }

  async #rewrap(passage: Passage, blobs: readonly Wrapped[]): Promise<Anew> {
    const anew = new Map<string, { rev: number; changes: Rewrapped }>()
    for (const { id, rev, blob, template } of blobs) {
      try {
        const changes = await rewrap(this.#options.hsm, passage.from, passage.to, blob, template())
        anew.set(id, { rev, changes })
      } catch (error) {
        if (error instanceof ApiError && error.status === 503) throw error
        passage.left.push(id)
        passage.cause ??= error
      }
    }
    return anew
  }

  async #store<R extends Versioned>(table: BlobTable<R>, anew: Anew): Promise<void> {
    const { database, job, fence } = this.#options
    if (anew.size === 0) return
    await database.transaction(async (tx) => {
      await tx.fence(job, fence)
      for (const [row, changes] of matching(anew, await table.sound(tx, [...anew.keys()]))) {
        await table.update(tx, row, changes)
      }
    })
  }
}

/** Ids whose rows are damaged, which was logged. */
function missing(ids: readonly string[], rows: readonly { readonly id: string }[]): string[] {
  const found = new Set(rows.map(({ id }) => id))
  return ids.filter((id) => !found.has(id))
}

/** Rows that are as they were when their blobs were read: a concurrent change or removal wins. */
const matching = <R extends Versioned>(anew: Anew, rows: readonly R[]): [R, Rewrapped][] =>
  rows.flatMap((row) => {
    const entry = anew.get(row.id)
    return entry?.rev === row.rev ? [[row, entry.changes]] : []
  })

function staying({ id, purpose }: KekRow, { left, cause }: Passage): Error {
  const names = left.slice(0, mostNamed).join(', ') + (left.length > mostNamed ? ', …' : '')
  const many = left.length === 1 ? '1 key stays' : `${left.length} keys stay`
  return new Error(`the ${purpose} KEK ${id} cannot go, ${many} under it: ${names}`, { cause })
}

/** The changes of a row whose blob is rewrapped. */
export interface Rewrapped {
  readonly blob: Buffer
  readonly kek: string
  readonly mechanism: number
}

/** Rewraps a blob under another KEK, through a sensitive session object that can only be wrapped. */
export async function rewrap(hsm: Hsm, from: Kek, to: Kek, blob: Buffer, template: KeyTemplate): Promise<Rewrapped> {
  const key = await from.unwrap(blob, { ...template, extractable: true, usages: [] })
  try {
    return { blob: await to.wrap(key), kek: to.row.id, mechanism: hsm.capabilities.kwp }
  } finally {
    await hsm.destroy(key)
  }
}
