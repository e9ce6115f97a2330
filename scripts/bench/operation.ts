import type { Api } from './api.ts'
import type { MinimalStore } from './authority/store.ts'
import type { LoadRequest } from './server.ts'
import type { RawToken } from './token.ts'

export type Body = Readonly<Record<string, unknown>>

/** One operation in the three forms that stand next to each other: one row of the table. */
export interface Operation {
  /** Operations in one request; 1 when absent. */
  readonly items?: number
  /** One call into the token, as tight as it goes; absent where there is none. */
  raw?(token: RawToken): unknown
  /** Whether one takes so long that raw calls are counted for as long as requests are. */
  readonly slow?: boolean
  /**
   * The minimal server's answer to a parsed body, to a GET's `path`, or to a body's `bytes` where there are `bodies`:
   * the one call between decoding and encoding, without any check. Bytes are sent as they are.
   */
  serve(token: RawToken, body: Body, store: MinimalStore): Body | Buffer | Promise<Body | Buffer>
  /** Whether the minimal server has a database, whose CPU counts. */
  readonly stored?: boolean
  /** Fills that database. */
  prepare?(token: RawToken, store: MinimalStore): Promise<unknown>
  /** A body that the minimal server can serve; absent for a GET. */
  body?(token: RawToken): Body
  /** Bodies of bytes in its place, as LoadRequest has them. */
  bodies?(token: RawToken): readonly string[]
  /** Of a GET to the minimal server; / when absent. */
  readonly path?: string
  /** Of the requests to the minimal server, as LoadRequest has it. */
  readonly variants?: number
  /** Prepares a server, Strongroom alone if it needs more than the API. @returns the request to measure */
  ask(node: Api): Promise<Question>
}

/** A request of the benchmark's caller, unless it has headers of its own. */
export type Question = Omit<LoadRequest, 'headers'> & Partial<Pick<LoadRequest, 'headers'>>

/** By the title of its row. */
export type Operations = Readonly<Record<string, Operation>>

/** The 64 bytes that every operation encrypts, authenticates or signs. */
export const message = Buffer.alloc(64, 'strongroom ')

export const bytes = (text: unknown): Buffer => Buffer.from(text as string, 'base64')
export const base64 = (buffer: Buffer): string => buffer.toString('base64')
export const plaintext = base64(message)

/** @param path below /v1 */
export const get = (path: string): Question => ({ method: 'GET', path: `/v1/${path}`, body: undefined })
export const post = (path: string, body: Body): Question => ({
  method: 'POST',
  path: `/v1/${path}`,
  body: JSON.stringify(body),
})

/** `data` of the API's answer to a body. */
export async function answer(node: Api, path: string, body: Body): Promise<Body> {
  const { data } = await node.call('POST', path, body)
  return data as Body
}

/** A value of the minimal server that a request needs and the raw loop reuses: made once. */
export function once<T>(make: (token: RawToken) => T): (token: RawToken) => T {
  let made: T | undefined
  return (token) => (made ??= make(token))
}
