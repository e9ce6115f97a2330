import type { Static, TObject } from 'typebox'
import type { PemSource } from './crypto/pemstream.ts'
import type { Stream } from './stream.ts'

/** Vault's policy capabilities. */
export type Capability = 'create' | 'read' | 'update' | 'patch' | 'delete' | 'list' | 'sudo' | 'deny'

/** What the request does; PUT is POST, `GET ?list=true` is LIST. */
export type Method = 'GET' | 'LIST' | 'POST' | 'DELETE' | 'PATCH' | 'HEAD'

export type MaybePromise<T> = T | Promise<T>

/** A secrets engine or system folder as it is mounted: `path` ends in a slash and has no /v1/. */
export interface Mount {
  readonly uuid: string
  readonly path: string
  readonly type: string
  readonly config: Readonly<Record<string, unknown>>
}

/** Who asks. The credential itself is never here. */
export interface Caller {
  readonly tokenId: string
  readonly accessor: string
  readonly displayName: string
  readonly policies: readonly string[]
}

/** What `run` receives: converted and checked input, and nothing of HTTP. */
export interface Call<Context, Body extends TObject = TObject> {
  readonly context: Context
  readonly mount: Mount
  readonly params: Readonly<Record<string, string>>
  readonly body: Static<Body>
  /** The body of a route that takes bytes; empty on every other. */
  readonly bytes: Buffer
  /** Canonical path below the mount. */
  readonly path: string
  readonly requestId: string
  /** Absent on public routes called without a token. */
  readonly caller: Caller | undefined
  /** What forms of answer the caller takes (RFC 9110, Accept); empty when he does not say. */
  readonly accept: string
  /** Request headers that the mount is tuned to let through, names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Granted by the policies; a route that creates does so only under `create`. */
  readonly capability: Capability
  /** Whether the policies grant sudo on the path too, for what a route lets few do. */
  privileged(): boolean
  /** Adds a line to `warnings` of the answer. */
  warn(text: string): void
}

/**
 * What `run` returns: `undefined` answers 204; a plain object is `data` of the envelope with 200; an Answer says more.
 */
export type Outcome = undefined | Data | Answer
export type Data = Readonly<Record<string, unknown>>

/** The envelope's lease fields. */
export interface Lease {
  readonly id: string
  readonly renewable: boolean
  readonly durationSeconds: number
}

/** What a client or a cache between may do with an answer that it keeps (RFC 9110 section 8.8, RFC 9111). */
export interface Caching {
  /** Not in the future; only whole seconds of it count. */
  readonly lastModified?: Date | undefined
  /** Opaque, of letters, digits and `-`, and another one whenever the answer is: mostly a digest. */
  readonly etag?: string | undefined
  /** How long it may be used without asking again; only answers of public routes are kept at all. */
  readonly maxAgeSeconds?: number | undefined
}

export class Answer {
  readonly status: number
  readonly data: Data | null
  readonly auth: Data | null
  readonly lease: Lease | null
  /** Sent as the whole body, without the envelope (sys/health, sys/seal-status …). */
  readonly bare: Data | undefined
  /** Sent as they are (DER, PEM, text). */
  readonly raw: { readonly type: string; readonly body: Uint8Array | string | Stream } | undefined
  /** A member of `data` that is too long to be held as a string. */
  readonly pem: { readonly name: string; readonly text: PemSource } | undefined
  /** Of an answer with 200; a conditional request may then be answered 304 in its place. */
  readonly caching: Caching | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(fields: {
    status?: number
    data?: Data | null
    auth?: Data | null
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
  /** A longer one is refused with 413, and so is one above 64 KiB without a good token. Public: 64 KiB at most. */
  readonly maxBytes: number
}

/**
 * One endpoint, declared once: routing, parsing, ACL, audit, OpenAPI and help come from it.
 */
export interface Route<Context, Body extends TObject = TObject> {
  readonly method: Method
  /**
   * Below the mount; `:name` captures one key name, `:path*` captures the rest, slashes included, but for one fixed
   * segment that may follow. `:path**` captures the rest raw: whatever was sent, decoded once, `//`, `..` and encoded
   * slashes included. Policies and audit see a raw rest as one percent-encoded segment.
   */
  readonly path: string
  /** Patterns (anchored) of captures that are no key names, by the capture's name. */
  readonly captures?: Readonly<Record<string, RegExp>>
  /**
   * The field whose value a capture is, where that is not the field of the capture's own name: rules of policies on
   * parameters see it there too.
   */
  readonly stands?: Readonly<Record<string, string | ((captured: string) => string)>>
  /**
   * `public` needs no token, though `caller` is there when a good one came, and a public GET answers HEAD too; `sudo`
   * needs the method's capability and sudo.
   */
  readonly access: 'public' | 'token' | 'sudo'
  /** One sentence for help and OpenAPI. */
  readonly about: string
  readonly body: Body
  /** The route takes bytes instead of JSON, whatever their Content-Type says; `body` then has no fields. */
  readonly bytes?: BytesBody
  /** Content types of what it answers as it is; absent where every answer is an envelope. */
  readonly rawTypes?: readonly string[]
  /** Says whether the object is there; absent makes a POST a `create`. Asked for callers who may create or update. */
  exists?(context: Context, mount: Mount, params: Readonly<Record<string, string>>): MaybePromise<boolean>
  /** The field in which batch items lie, for parameter rules of policies. */
  readonly items?: string
  /** Whether every key of `data` also stands at the top level of the envelope. */
  readonly inject?: boolean
  /** False for what anybody may ask at any time, even when no audit device can be written: health and the like. */
  readonly audited?: false
  run(call: Call<Context, Body>): MaybePromise<Outcome>
}

/** Keeps the body's type from the declaration to `run`. */
export const route = <Context, Body extends TObject>(declaration: Route<Context, Body>): Route<Context, Body> =>
  declaration

/** A table of routes of one engine. `run` is a method, so that each route keeps its own body type inside. */
export type Routes<Context> = readonly Route<Context>[]
