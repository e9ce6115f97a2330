import {
  type TArray,
  type TBoolean,
  type TInteger,
  type TOptional,
  type TRecord,
  type TString,
  type TUnknown,
  type TUnsafe,
  Type,
} from 'typebox'

/**
 * Fields of request bodies. Each is an ordinary JSON Schema (OpenAPI and help are printed from it) with an additional
 * keyword `lenient`, the spellings of Vault's clients; request/ converts to that type before the schema is checked.
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
  /**
   * The most characters, of all elements and keys together; `usualCharacters` when absent. convert.ts counts elements.
   */
  readonly longest?: number
  /**
   * The value of a field that was never set. An explicit null stands for it (RFC 7396); without one, null is like an
   * absent field.
   */
  readonly initial?: unknown
}

/** More than any name, address or certificate takes, and little beside the largest body. */
const usualCharacters = 512 * 1024
/** `longest` of a field that may fill the largest body. */
export const wholeBody = Number.POSITIVE_INFINITY

const keywords = (lenient: Lenient, options: FieldOptions) => ({
  lenient,
  description: options.about,
  ...(options.aliases ? { aliases: options.aliases } : {}),
  ...(options.minimum === undefined ? {} : { minimum: options.minimum }),
  ...(options.maximum === undefined ? {} : { maximum: options.maximum }),
  longest: lenient === 'raw' ? wholeBody : (options.longest ?? usualCharacters),
  ...(options.values ? { enum: [...options.values] } : {}),
  ...(options.initial === undefined ? {} : { default: options.initial }),
})

/** A string; numbers and booleans become their text. Absent stays absent. */
export const text = (options: FieldOptions): TOptional<TString> =>
  Type.Optional(Type.String(keywords('string', options)))
/** An integer; strings in decimal, or with the prefix `0x` or `0`, are accepted too. */
export const integer = (options: FieldOptions): TOptional<TInteger> =>
  Type.Optional(Type.Integer(keywords('integer', options)))
/** A boolean; numbers and Go's words for booleans are accepted too. */
export const boolean = (options: FieldOptions): TOptional<TBoolean> =>
  Type.Optional(Type.Boolean(keywords('boolean', options)))
/** Whole seconds, from a number, a numeric string, or a Go duration (`1h30m`, `7d`). */
export const duration = (options: FieldOptions): TOptional<TInteger> =>
  Type.Optional(Type.Integer(keywords('duration', options)))
/** A time, from RFC 3339 text or a number of seconds since the Unix epoch; milliseconds since then once converted. */
export const time = (options: FieldOptions): TOptional<TInteger> =>
  Type.Optional(Type.Integer(keywords('time', options)))
/** A list of strings; a single scalar becomes a list of one. */
export const list = (options: FieldOptions): TOptional<TArray<TString>> =>
  Type.Optional(Type.Array(Type.String(), keywords('list', options)))
/** A list of strings, which may also be written `a,b,c`. */
export const commaList = (options: FieldOptions): TOptional<TArray<TString>> =>
  Type.Optional(Type.Array(Type.String(), keywords('commaList', options)))
/**
 * As commaList, of an initial value that differs between objects: null reaches the route, which knows the object.
 * Policies and OpenAPI see `initial`, the most that it can be.
 */
export const ownList = (options: FieldOptions): TOptional<TUnsafe<readonly string[] | null>> =>
  Type.Optional(Type.Unsafe({ ...Type.Array(Type.String(), keywords('commaList', options)), own: true }))
/** A list of strings that is always written `a,b,c`. Policy rules on the field apply to each element. */
export const commaText = (options: FieldOptions): TOptional<TArray<TString>> =>
  Type.Optional(Type.Array(Type.String(), keywords('commaText', options)))
/** String keys and values; also accepted as a list of `k=v`. */
export const map = (options: FieldOptions): TOptional<TRecord<'^.*$', TString>> =>
  Type.Optional(Type.Record(Type.String(), Type.String(), keywords('map', options)))
/** Passed through unconverted (nested objects, batch items): the route that declares it checks it. */
export const raw = (options: FieldOptions): TOptional<TUnknown> => Type.Optional(Type.Unknown(keywords('raw', options)))
