import type { Static, TObject } from 'typebox'
import type { Answers } from './answers.ts'
import type { PemSource } from './crypto/pemstream.ts'
import type { Stream } from './stream.ts'

/** Vault's policy capabilities. */
export type Capability = 'create' | 'read' | 'update' | 'patch' | 'delete' | 'list' | 'sudo' | 'deny'

/** The operation of a request; PUT is POST, `GET ?list=true` is LIST. */
export type Method = 'GET' | 'LIST' | 'POST' | 'DELETE' | 'PATCH' | 'HEAD'

export type MaybePromise<T> = T | Promise<T>

/** A mounted secrets engine or system folder: `path` ends in a slash and has no /v1/. */
export interface Mount {
  readonly uuid: string
  readonly path: string
  readonly type: string
  readonly config: Readonly<Record<string, unknown>>
}

/** The authenticated caller. The credential itself is never here. */
export interface Caller {
  readonly tokenId: string
  readonly accessor: string
  readonly displayName: string
  /** The display name and an HMAC of the accessor: the maker in the history of a key. */
  readonly maker: string
  readonly policies: readonly string[]
}

/** The input of `run`: converted and checked, without HTTP. */
export interface Call<Context, Body extends TObject = TObject> {
  readonly context: Context
  readonly mount: Mount
  readonly params: Readonly<Record<string, string>>
  readonly body: Static<Body>
  /** The body of a route that takes bytes; empty on every other. */
  readonly bytes: Buffer
  /** Canonical path below the mount. */
  readonly path: string
  /** The whole path as sent, if a name in it had another spelling. */
  readonly sentPath: string | undefined
  readonly requestId: string
  /** Absent on public routes called without a token. */
  readonly caller: Caller | undefined
  /** The accepted forms of answer (RFC 9110, Accept); empty if not given. */
  readonly accept: string
  /** Request headers passed by the mount's tuning, names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Granted by the policies; a route that creates does so only under `create`. */
  readonly capability: Capability
  /** Whether the policies also grant sudo on the path, for privileged options of a route. */
  privileged(): boolean
  /** Adds a line to `warnings` of the answer. */
  warn(text: string): void
}

/**
 * The result of `run`: `undefined` gives 204; a plain object is the `data` of an envelope with 200; an Answer sets
 * more.
 */
export type Outcome = undefined | Data | Answer
export type Data = Readonly<Record<string, unknown>>

/** The envelope's lease fields. */
export interface Lease {
  readonly id: string
  readonly renewable: boolean
  readonly durationSeconds: number
}

/** The rules for clients and caches that keep an answer (RFC 9110 section 8.8, RFC 9111). */
export interface Caching {
  /** Not in the future; rounded down to a second. */
  readonly lastModified?: Date | undefined
  /** Opaque, of letters, digits and `-`; changes whenever the answer does: mostly a digest. */
  readonly etag?: string | undefined
  /** Seconds for which it may be used without asking again; only answers of public routes may be cached at all. */
  readonly maxAgeSeconds?: number | undefined
}

/** An answer that is more than data with 200: another status or form, a lease, headers, or rules for caches. */
export class Answer {
  readonly status: number
  readonly data: Data | null
  readonly auth: Data | null
  /** Further members of `auth` in audit lines. */
  readonly audited: Data
  readonly lease: Lease | null
  /** Sent as the whole body, without the envelope (sys/health, sys/seal-status …). */
  readonly bare: Data | undefined
  /** Sent as they are (DER, PEM, text). */
  readonly raw: { readonly type: string; readonly body: Uint8Array | string | Stream } | undefined
  /** A member of `data` that is too long to be held as a string. */
  readonly pem: { readonly name: string; readonly text: PemSource } | undefined
  /** For an answer with 200; a conditional request may then get 304 instead. */
  readonly caching: Caching | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(fields: {
    status?: number
    data?: Data | null
    auth?: Data | null
    audited?: Data
    lease?: Lease
    bare?: Data
    raw?: { type: string; body: Uint8Array | string | Stream }
    pem?: { name: string; text: PemSource }
    caching?: Caching
    headers?: Record<string, string>
  }) {
    this.status = fields.status ?? 200
    this.data = fields.data ?? null
    this.auth = fields.auth ?? null
    this.audited = fields.audited ?? {}
    this.lease = fields.lease ?? null
    this.bare = fields.bare
    this.raw = fields.raw
    this.pem = fields.pem
    this.caching = fields.caching
    this.headers = fields.headers ?? {}
  }

  /** The same answer with these headers instead. */
  withHeaders(headers: Readonly<Record<string, string>>): Answer {
    return Object.assign(Object.create(Answer.prototype), this, { headers })
  }
}

/** A body of bytes. */
export interface BytesBody {
  /** The Content-Type it should have, for OpenAPI and help. */
  readonly type: string
  /** A longer one is refused with 413, as is one above 64 KiB without a valid token. Public: 64 KiB at most. */
  readonly maxBytes: number
}

/** One endpoint, declared once: routing, parsing, ACL, audit, OpenAPI and help come from it. */
export interface Route<Context, Body extends TObject = TObject> {
  readonly method: Method
  /**
   * Below the mount; `:name` captures one key name, `:path*` captures the rest, including slashes, except one fixed
   * segment that may follow. `:path**` captures the rest raw: decoded once and otherwise unchanged, including `//`,
   * `..` and encoded slashes. Policies and audit see a raw rest as one percent-encoded segment.
   */
  readonly path: string
  /** Patterns (anchored) of captures that are not key names, by the capture's name. */
  readonly captures?: Readonly<Record<string, RegExp>>
  /**
   * The field whose value a capture gives, if it is not the field with the capture's own name: policy rules on
   * parameters apply to it there too.
   */
  readonly stands?: Readonly<Record<string, string | ((captured: string) => string)>>
  /**
   * `public` needs no token, though `caller` is set when a valid one was sent, and a public GET also answers HEAD;
   * `sudo` needs the method's capability and sudo.
   */
  readonly access: 'public' | 'token' | 'sudo'
  /** One sentence for help and OpenAPI. */
  readonly about: string
  readonly body: Body
  /** The route takes bytes instead of JSON, with any Content-Type; `body` then has no fields. */
  readonly bytes?: BytesBody
  /** Its successful answers, for OpenAPI and the tests; without one it always refuses. */
  readonly answers: Answers
  /** Whether the object exists; if not, a POST is a `create`. Called only for callers who may create or update. */
  exists?(context: Context, mount: Mount, params: Readonly<Record<string, string>>): MaybePromise<boolean>
  /** The most elements of a list in a field of the body, if 10,000 are too few. Elements are small. */
  readonly longestList?: number
  /** The field with the batch items, for parameter rules of policies. */
  readonly items?: string
  /** Whether every member of `data` is repeated at the top level of the envelope. */
  readonly inject?: boolean
  /**
   * False for requests that anybody may make at any time, even when no audit device can be written: health and similar
   * ones.
   */
  readonly audited?: false
  run(call: Call<Context, Body>): MaybePromise<Outcome>
}

/** Keeps the body's type from the declaration to `run`. */
export const route = <Context, Body extends TObject>(declaration: Route<Context, Body>): Route<Context, Body> =>
  declaration

/** A table of routes of one engine. `run` is a method, so that each route keeps its own body type. */
export type Routes<Context> = readonly Route<Context>[]
