import {
  type TArray,
  type TBoolean,
  type TInteger,
  type TOptional,
  type TRecord,
  type TString,
  type TUnknown,
  Type,
} from 'typebox'

/**
 * Fields of request bodies. Each is an ordinary JSON Schema (OpenAPI and help are printed from it) that carries under
 * `lenient` how Vault's clients may spell its value; request/ converts to that type before the schema is checked.
 * Durations are whole seconds once converted, times milliseconds since the Unix epoch.
 */
export type Lenient =
  | 'string'
  | 'integer'
  | 'boolean'
  | 'duration'
  | 'list'
  | 'commaList'
  | 'commaText'
  | 'map'
  | 'time'
  | 'raw'

export interface FieldOptions {
  /** One sentence for OpenAPI and `?help=1`. */
  readonly about: string
  /** Older names of the field; the first one present counts when the name itself is absent. */
  readonly aliases?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly values?: readonly string[]
  /** What a field has that was never set. An explicit null stands for it (RFC 7396); elsewhere null is as if absent. */
  readonly initial?: unknown
}

const keywords = (lenient: Lenient, options: FieldOptions) => ({
  lenient,
  description: options.about,
  ...(options.aliases ? { aliases: options.aliases } : {}),
  ...(options.minimum === undefined ? {} : { minimum: options.minimum }),
  ...(options.maximum === undefined ? {} : { maximum: options.maximum }),
  ...(options.values ? { enum: [...options.values] } : {}),
  ...(options.initial === undefined ? {} : { default: options.initial }),
})

/** A string; numbers and booleans become their text. Absent stays absent. */
export const text = (options: FieldOptions): TOptional<TString> =>
  Type.Optional(Type.String(keywords('string', options)))
/** An integer; decimal, `0x` and `0` prefixed strings are read. */
export const integer = (options: FieldOptions): TOptional<TInteger> =>
  Type.Optional(Type.Integer(keywords('integer', options)))
/** A boolean; Go's words for it and numbers are read. */
export const boolean = (options: FieldOptions): TOptional<TBoolean> =>
  Type.Optional(Type.Boolean(keywords('boolean', options)))
/** Whole seconds, from a number, a numeric string, or a Go duration (`1h30m`, `7d`). */
export const duration = (options: FieldOptions): TOptional<TInteger> =>
  Type.Optional(Type.Integer(keywords('duration', options)))
/** A moment, from RFC 3339 text or a number of seconds since the Unix epoch; milliseconds since then once converted. */
export const time = (options: FieldOptions): TOptional<TInteger> =>
  Type.Optional(Type.Integer(keywords('time', options)))
/** A list of strings; a single scalar becomes a list of one. */
export const list = (options: FieldOptions): TOptional<TArray<TString>> =>
  Type.Optional(Type.Array(Type.String(), keywords('list', options)))
/** A list of strings, also written `a,b,c`. */
export const commaList = (options: FieldOptions): TOptional<TArray<TString>> =>
  Type.Optional(Type.Array(Type.String(), keywords('commaList', options)))
/** A list of strings that is always written `a,b,c`. Rules of policies on the field hold for each of them. */
export const commaText = (options: FieldOptions): TOptional<TArray<TString>> =>
  Type.Optional(Type.Array(Type.String(), keywords('commaText', options)))
/** String keys and values; also a list of `k=v`. */
export const map = (options: FieldOptions): TOptional<TRecord<'^.*$', TString>> =>
  Type.Optional(Type.Record(Type.String(), Type.String(), keywords('map', options)))
/** Passed through unconverted (nested objects, batch items): the route that declares it checks it. */
export const raw = (options: FieldOptions): TOptional<TUnknown> => Type.Optional(Type.Unknown(keywords('raw', options)))
