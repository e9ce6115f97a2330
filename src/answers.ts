import { type TArray, type TNull, type TObject, type TSchema, type TString, type TUnion, Type } from 'typebox'

/**
 * The successful answers of routes, as JSON Schemas: OpenAPI is printed from them, and the tests check every
 * answer against them. Requests never look at them. Objects have the members declared and no others.
 */
export type Form =
  /** The envelope; `data` and `auth` are null where they are not given. */
  | { readonly kind: 'envelope'; readonly status: Status; readonly data?: TSchema; readonly auth?: TSchema }
  /** An object without the envelope. */
  | { readonly kind: 'bare'; readonly status: Status; readonly schema: TSchema }
  | { readonly kind: 'bytes'; readonly status: 200; readonly type: string }
  | { readonly kind: 'empty'; readonly status: 204 }

/** `2XX` where the request chooses the status. */
type Status = number | '2XX'

/** Every form that a route has; a route without one always refuses. */
export type Answers = readonly Form[]

/** The envelope with these data. */
export const data = (schema: TSchema, status: Status = 200): Answers => [{ kind: 'envelope', status, data: schema }]
/** The envelope with the `auth` of a token. */
export const auth = (schema: TSchema): Answers => [{ kind: 'envelope', status: 200, auth: schema }]
/** The envelope alone: for a lease, or for warnings. */
export const noData = (status: Status = 200): Answers => [{ kind: 'envelope', status }]
/** An object without the envelope. */
export const bare = (schema: TSchema, status: Status = 200): Answers => [{ kind: 'bare', status, schema }]
/** A file. @param type its content type */
export const bytes = (type: string): Answers => [{ kind: 'bytes', status: 200, type }]
/** No content. */
export const empty: Answers = [{ kind: 'empty', status: 204 }]
/** A route that returns nothing: no content, or the envelope when there are warnings. */
export const done: Answers = [...empty, ...noData()]

export const strings: TArray<TString> = Type.Array(Type.String())
export const orNull = <T extends TSchema>(schema: T): TUnion<[T, TNull]> => Type.Union([schema, Type.Null()])
/** An object with these values under names that are not known beforehand. */
export const mapOf = (schema: TSchema): TSchema => Type.Record(Type.String(), schema)
/** Any object. */
export const anyObject: TSchema = mapOf(Type.Unknown())
/** RFC 3339. */
export const timestamp: TString = Type.String({ format: 'date-time' })
/** A schema that OpenAPI lists under a name. */
export const titled = (title: string, properties: Parameters<typeof Type.Object>[0]): TObject =>
  Type.Object(properties, { title })

/** A list of names. */
export const keyList: Answers = data(Type.Object({ keys: strings }))
/** A list of names with facts about each. */
export const keyInfo = (info: TSchema): Answers => data(Type.Object({ keys: strings, key_info: mapOf(info) }))
