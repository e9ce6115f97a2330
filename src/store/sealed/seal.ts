import type { Logger } from '../../log.ts'
import type { MaybePromise } from '../../route.ts'
import { DamagedRow } from '../faults.ts'
import type { Stored } from '../table.ts'
import type { Shape } from './shape.ts'

/** The row MAC, given by keys/: HMAC-SHA-256 under a key that stays in the token. */
export interface Mac {
  /** Which key new rows are sealed with; stored with the row. */
  readonly keyId: string
  /** Stored with the row and part of what is sealed; rows of another format are refused. */
  readonly format: number
  /** 32 bytes. */
  compute(message: Buffer): MaybePromise<Buffer>
  /** Whether rows sealed with this key can be verified (the old key during a rotation too). */
  knows(keyId: string): boolean
  verify(keyId: string, message: Buffer, mac: Buffer): MaybePromise<boolean>
}

/** The columns of the seal itself, after the shape's own. */
export const sealNames = ['mac_key_id', 'mac_format', 'mac'] as const

/** Seals rows and verifies them. */
export class Seal {
  readonly #log: Logger
  #mac: Mac | undefined
  epoch = 0

  constructor(log: Logger) {
    this.#log = log
  }

  use(mac: Mac): void {
    this.#mac = mac
  }

  get #current(): Mac {
    if (!this.#mac) throw new Error('sealed tables are closed: no MAC was given yet')
    return this.#mac
  }

  /** The stored values with the seal's own behind them. */
  async close(shape: Shape, stored: readonly Stored[]): Promise<Stored[]> {
    const mac = this.#current
    const tag = await mac.compute(shape.canonical(mac.format, stored))
    return [...stored, mac.keyId, mac.format, tag]
  }

  /** The row's values, if the seal behind them is right. Throws DamagedRow. */
  async open(shape: Shape, sealed: readonly Stored[]): Promise<Record<string, unknown>> {
    const width = shape.fields.length
    const stored = sealed.slice(0, width)
    const [keyId, format, tag] = sealed.slice(width)
    const mac = this.#current
    const fail = (reason: string): never => this.refuse(shape.table, String(stored[0]), reason)
    if (format !== mac.format) return fail(`sealed in unknown format ${format}`)
    if (typeof keyId !== 'string' || !mac.knows(keyId)) return fail('sealed with an unknown key')
    const message = shape.canonical(format, stored)
    if (!Buffer.isBuffer(tag) || !(await mac.verify(keyId, message, tag))) return fail('the seal is broken')
    return shape.decode(stored)
  }

  /** Logs and throws DamagedRow. */
  refuse(table: string, id: string, reason: string): never {
    this.#log.error({ table, row: id, reason }, 'a damaged row was refused')
    throw new DamagedRow(table, id, reason)
  }
}
