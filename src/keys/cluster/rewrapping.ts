import { CKK } from '../../hsm/constants.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { KeyTemplate } from '../../hsm/template.ts'
import type { Database } from '../../store/database.ts'
import type { Kek, Keks } from '../kek/keks.ts'
import { blobTemplate } from '../live/blobs.ts'
import { Material } from '../material.ts'
import { type KekPurpose, type KekRow, materialsTable, systemKeysTable } from '../tables.ts'

const batch = 50

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

  async run(old: KekRow, signal: AbortSignal): Promise<void> {
    const { keks } = this.#options
    const [from, to] = [keks.of(old), await keks.active(old.purpose as KekPurpose)]
    await this.#systemKeys(from, to)
    for (let after = ''; !signal.aborted; ) {
      const last = await this.#materials(from, to, after)
      if (last === undefined) return
      after = last
    }
  }

  async #systemKeys(from: Kek, to: Kek): Promise<void> {
    const { database, job, fence } = this.#options
    const table = database.table(systemKeysTable)
    const rows = await database.read((q) => table.list(q, { kek: from.row.id }, { by: 'id', limit: 100 }))
    const template: KeyTemplate = { class: 'secret', keyType: CKK.GENERIC_SECRET, usages: [] }
    for (const { id, rev, blob } of rows) {
      const changes = await rewrap(this.#options.hsm, from, to, blob, template)
      await database.transaction(async (tx) => {
        await tx.fence(job, fence)
        const row = await table.get(tx, id)
        if (row?.rev === rev) await table.update(tx, row, changes)
      })
    }
  }

  /** @returns the last id of the batch; undefined after the last batch */
  async #materials(from: Kek, to: Kek, after: string): Promise<string | undefined> {
    const { database, job, fence } = this.#options
    const table = database.table(materialsTable)
    const rows = await database.read((q) => table.list(q, { kek: from.row.id }, { by: 'id', after, limit: batch }))
    if (rows.length === 0) return undefined
    const anew = new Map<string, { rev: number; changes: Rewrapped }>()
    for (const row of rows) {
      if (row.blob === null) continue
      const changes = await rewrap(this.#options.hsm, from, to, row.blob, blobTemplate(new Material(row)))
      anew.set(row.id, { rev: row.rev, changes })
    }
    await database.transaction(async (tx) => {
      await tx.fence(job, fence)
      for (const [id, { rev, changes }] of anew) {
        const row = await table.get(tx, id)
        // A concurrent change or removal wins; the next run handles the rest.
        if (row?.rev === rev) await table.update(tx, row, changes)
      }
    })
    return rows.at(-1)?.id
  }
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
