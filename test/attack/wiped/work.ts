import type { Method, Routes } from '../../../src/route.ts'
import type { Client, Reply } from '../../support/client.ts'
import { Walked } from '../../support/walked.ts'

/** Bytes that must not stay in memory, by a name for each. */
export type Secrets = Readonly<Record<string, Uint8Array>>

/** Begins the names of secrets of keys that OpenSSL parses: it clears them when their KeyObject is collected. */
export const parsed = 'parsed'

/** Whether a secret may stay until the next collection: those, and seeds, by which OpenSSL signs. */
export const mayStay = (name: string): boolean => name.endsWith(': seed') || name.includes(`: ${parsed}: `)

/** Something that a server does with secrets that the test knows, or learns from its answers. */
export interface Work {
  readonly title: string
  /** The routes that the secrets pass: `transit: POST encrypt/:name`. */
  readonly through: readonly string[]
  /** Memory is searched right after it: what it leaves is soon overwritten by others. */
  readonly soon?: true
  run(calls: Calls): Promise<Secrets>
}

/** The same work for several types of key. */
export const forEach = <T>(types: readonly T[], work: (type: T) => Work): readonly Work[] =>
  types.map((type) => work(type))

export const at = (mount: string, ...routes: readonly string[]): readonly string[] =>
  routes.map((route) => `${mount}: ${route}`)

/** Calls a server, and notes which routes have answered with success. */
export class Calls {
  readonly #client: Client
  readonly #walked: Walked

  /** @param tables routes by the path of their mount */
  constructor(client: Client, tables: Readonly<Record<string, Routes<unknown>>>) {
    this.#client = client
    this.#walked = new Walked(tables)
  }

  get answered(): ReadonlySet<string> {
    return this.#walked.routes
  }

  get(path: string): Promise<Reply> {
    return this.call('GET', path)
  }

  post(path: string, body: unknown = {}): Promise<Reply> {
    return this.call('POST', path, body)
  }

  /** A POST that must be refused, and counts as no answer of its route. */
  async refused(path: string, body: unknown): Promise<void> {
    const { status, text } = await this.#client.post(path, body)
    if (status < 400 || status >= 500) throw new Error(`${path}: ${status} ${text}`)
  }

  async call(method: Method, path: string, body?: unknown): Promise<Reply> {
    const reply = await this.#client.call(method, path, body)
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`)
    this.#walked.note(method, path)
    return reply
  }
}
