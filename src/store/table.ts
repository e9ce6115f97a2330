/** The values that the database driver takes and returns for a column. */
export type Stored = string | number | Buffer | null

export type Kind = 'text' | 'integer' | 'boolean' | 'bytes' | 'json'

/** One column: its value in the code and in the database. */
export interface Column<V> {
  readonly kind: Kind
  readonly optional: boolean
  encode(value: V): Stored
  decode(stored: Stored): V
}

/** A column that is not NULL, unless made `.nullable()`. */
export interface Definite<V> extends Column<V> {
  nullable(): Column<V | null>
}

export type Columns = Readonly<Record<string, Column<unknown>>>

/** A table as the code sees it. `sealed` rows carry a MAC and the standard fields of `Sealed`. */
export interface Table<C extends Columns = Columns, S extends boolean = boolean> {
  readonly name: string
  readonly columns: C
  readonly sealed: S
}

/** The fields every sealed row has besides its declared columns. `mount` is a mount's uuid, or '' outside mounts. */
export interface Sealed {
  readonly id: string
  readonly namespace: string
  readonly mount: string
  /** Grows by one with every update; updates compare it. */
  readonly rev: number
  /** The epoch of the database (a restore begins a new one) in which the row was last written. */
  readonly epoch: number
}

type ValueOf<C> = C extends Column<infer V> ? V : never
type Fields<C extends Columns> = { readonly [K in keyof C]: ValueOf<C[K]> }
type OptionalKeys<C extends Columns> = { [K in keyof C]: null extends ValueOf<C[K]> ? K : never }[keyof C]

/** A row as it is read: `Row<typeof mounts>`. */
export type Row<T extends Table> =
  T extends Table<infer C, infer S> ? Fields<C> & (S extends true ? Sealed : unknown) : never

/**
 * A row to insert: nullable columns may be left out; a sealed row gets a new id (UUIDv7), namespace '' and mount ''
 * unless given.
 */
export type New<T extends Table> =
  T extends Table<infer C, infer S>
    ? Omit<Fields<C>, OptionalKeys<C>> &
        Partial<Pick<Fields<C>, OptionalKeys<C>>> &
        (S extends true ? Partial<Pick<Sealed, 'id' | 'namespace' | 'mount'>> : unknown)
    : never

/** Declared columns to change. */
export type Changes<T extends Table> = T extends Table<infer C, boolean> ? Partial<Fields<C>> : never

/** Whole numbers between inclusive bounds; NULL is never among them. */
export class Range {
  readonly bounds: readonly (readonly ['>=' | '<=', number])[]

  constructor(...bounds: Range['bounds']) {
    this.bounds = bounds
  }

  includes(value: unknown): boolean {
    if (typeof value !== 'number') return false
    return this.bounds.every(([sign, bound]) => (sign === '<=' ? value <= bound : value >= bound))
  }
}

export const atLeast = (bound: number): Range => new Range(['>=', bound])
export const atMost = (bound: number): Range => new Range(['<=', bound])
/** Numbers from one to another, both included. */
export const between = (from: number, to: number): Range => new Range(['>=', from], ['<=', to])

/**
 * Times that are over by a moment, both in milliseconds since the Unix epoch. None of ours is below 1: a row with such
 * a time was edited, and every run of a job would read it again. It is found when it is looked up.
 */
export const dueBy = (moment: number): Range => between(1, moment)

type Asked<V> = V | (number extends V ? Range : never)

/** Equality on every named column, or for numbers a range; null means IS NULL. */
export type Where<T extends Table> = { readonly [K in keyof Row<T>]?: Asked<Row<T>[K]> }

/** Declares a table. The schema itself is in migrations/; camelCase properties are snake_case columns there. */
export const defineTable = <const C extends Columns, const S extends boolean>(
  name: string,
  columns: C,
  options: { sealed: S },
): Table<C, S> => ({ name, columns, sealed: options.sealed })

function definite<V>(kind: Kind, encode: (value: V) => Stored, decode: (stored: Stored) => V): Definite<V> {
  return {
    kind,
    optional: false,
    encode,
    decode,
    nullable: () => ({
      kind,
      optional: true,
      encode: (value) => (value === null ? null : encode(value)),
      decode: (stored) => (stored === null ? null : decode(stored)),
    }),
  }
}

function wellFormed(text: string): string {
  if (!text.isWellFormed()) throw new TypeError('text with a lone surrogate cannot be stored')
  return text
}

function wholeNumber(stored: Stored): number {
  const value = Number(stored)
  if (stored === null || !Number.isSafeInteger(value)) throw new TypeError('not a whole number')
  return value
}

function bytesOfHex(digits: string): Buffer {
  if (!/^(?:[0-9a-f]{2})*$/.test(digits)) throw new TypeError('not lower-case hexadecimal digits')
  return Buffer.from(digits, 'hex')
}

const asText = (stored: Stored): string => (Buffer.isBuffer(stored) ? stored.toString('utf8') : String(stored))

/**
 * Column kinds. Integers are safe JS numbers (BIGINT); times are integers of milliseconds; json is stored as its text.
 */
export const column = {
  text: (): Definite<string> => definite('text', wellFormed, asText),
  integer: (): Definite<number> => definite('integer', wholeNumber, wholeNumber),
  /**
   * An integer of a column that is read unverified: an edited value that is not a number becomes NaN, and hides no
   * other row.
   */
  loose: (): Definite<number> => definite('integer', wholeNumber, Number),
  boolean: (): Definite<boolean> =>
    definite(
      'boolean',
      (value) => (value ? 1 : 0),
      (stored) => wholeNumber(stored) !== 0,
    ),
  bytes: (): Definite<Buffer> =>
    definite(
      'bytes',
      (value) => value,
      (stored) => (Buffer.isBuffer(stored) ? stored : Buffer.from(String(stored), 'utf8')),
    ),
  /** Bytes that the code handles as lower-case hexadecimal digits. */
  hex: (): Definite<string> =>
    definite('bytes', bytesOfHex, (stored) => (Buffer.isBuffer(stored) ? stored.toString('hex') : '')),
  json: <T>(): Definite<T> =>
    definite<T>(
      'json',
      (value) => wellFormed(JSON.stringify(value)),
      (stored) => JSON.parse(asText(stored)) as T,
    ),
}
