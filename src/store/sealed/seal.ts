import { LRUCache } from 'lru-cache'
import { freeze } from '../../freeze.ts'
import type { Logger } from '../../log.ts'
import type { MaybePromise } from '../../route.ts'
import { DamagedRow } from '../faults.ts'
import type { Stored } from '../table.ts'
import type { Shape } from './shape.ts'

/** The row MAC, provided by keys/: HMAC-SHA-256 under a key that stays in the token. */
export interface Mac {
  /** The key that seals new rows; stored with each row. */
  readonly keyId: string
  /** Stored with the row and under the MAC; rows of another format are refused. */
  readonly format: number
  /** 32 bytes. */
  compute(message: Buffer): MaybePromise<Buffer>
  /** Whether rows sealed with this key can be verified (the old key too during a rotation). */
  knows(keyId: string): boolean
  verify(keyId: string, message: Buffer, mac: Buffer): MaybePromise<boolean>
}

/** The columns of the seal itself, after the shape's own. */
export const sealNames = ['mac_key_id', 'mac_format', 'mac'] as const

/** A row that this process has sealed or verified: as stored, followed by the columns of the seal, and decoded. */
export interface Sound {
  readonly sealed: readonly Stored[]
  readonly row: Values
}

type Values = Readonly<Record<string, unknown>>

/** Memory for sound rows: their stored bytes and an allowance for their objects. */
const rememberedBytes = 16 * 1024 * 1024
/**
 * Larger rows, such as parts of revocation lists, are verified each time: a few hundred of them would push out all
 * others.
 */
const largestRemembered = 16 * 1024
const objectBytes = 1000

/**
 * Seals rows and verifies them. A row that is byte for byte as this process wrote or read it before costs no second
 * call of the token.
 */
export class Seal {
  readonly #log: Logger
  /** By table and id. */
  readonly #sound = new LRUCache<string, Sound>({
    maxSize: rememberedBytes,
    maxEntrySize: largestRemembered,
    sizeCalculation: sizeOf,
  })
  #mac: Mac | undefined
  epoch = 0

  constructor(log: Logger) {
    this.#log = log
  }

  /** Rows found sound by another MAC are verified again. */
  use(mac: Mac): void {
    this.#mac = mac
    this.#sound.clear()
  }

  get #current(): Mac {
    if (!this.#mac) throw new Error('sealed tables are closed: no MAC was given yet')
    return this.#mac
  }

  /**
   * Seals a row. It is remembered as sound whether or not its transaction commits: the seal does not depend on that.
   */
  async close(shape: Shape, values: Values): Promise<Sound> {
    const mac = this.#current
    // Copies: the caller may change its bytes later, the remembered row must not.
    const stored = shape.encode(values).map((value) => (Buffer.isBuffer(value) ? Buffer.from(value) : value))
    const tag = await mac.compute(shape.canonical(mac.format, stored))
    const sound = { sealed: [...stored, mac.keyId, mac.format, tag], row: freeze(shape.decode(stored)) }
    this.#sound.set(placeOf(shape, stored), sound)
    return sound
  }

  /** How a row is stored that this process has sealed or verified, if it is still remembered. */
  sealedOf(shape: Shape, row: object): readonly Stored[] | undefined {
    const sound = this.#sound.get(placeOf(shape, [(row as { id?: string }).id ?? null]))
    return sound?.row === row ? sound.sealed : undefined
  }

  /** The row's values, if its seal is right. Throws DamagedRow. */
  open(shape: Shape, sealed: readonly Stored[]): MaybePromise<Values> {
    const place = placeOf(shape, sealed)
    const sound = this.#sound.get(place)
    if (sound && this.#current.knows(String(sealed[shape.fields.length])) && equal(sound.sealed, sealed))
      return sound.row
    return this.#verify(shape, sealed).then((row) => {
      this.#sound.set(place, { sealed, row })
      return row
    })
  }

  async #verify(shape: Shape, sealed: readonly Stored[]): Promise<Values> {
    const width = shape.fields.length
    const stored = sealed.slice(0, width)
    const [keyId, format, tag] = sealed.slice(width)
    const mac = this.#current
    const fail = (reason: string): never => this.refuse(shape.table, String(stored[0]), reason)
    if (format !== mac.format) return fail(`sealed in unknown format ${format}`)
    if (typeof keyId !== 'string' || !mac.knows(keyId)) return fail('sealed with an unknown key')
    const message = shape.canonical(format, stored)
    if (!Buffer.isBuffer(tag) || !(await mac.verify(keyId, message, tag))) return fail('the seal is broken')
    return freeze(shape.decode(stored))
  }

  /** Logs and throws DamagedRow. */
  refuse(table: string, id: string, reason: string): never {
    this.#log.error({ table, row: id, reason }, 'a damaged row was refused')
    throw new DamagedRow(table, id, reason)
  }
}

const placeOf = (shape: Shape, [id]: readonly Stored[]): string => `${shape.table} ${id}`

const sizeOf = ({ sealed }: Sound): number =>
  sealed.reduce<number>((sum, value) => sum + (typeof value === 'number' ? 8 : (value?.length ?? 0)), objectBytes)

const equal = (one: readonly Stored[], other: readonly Stored[]): boolean =>
  one.length === other.length &&
  one.every((value, index) => {
    const found = other[index]
    return Buffer.isBuffer(value) ? Buffer.isBuffer(found) && value.equals(found) : value === found
  })
