import type { Api } from '../api.ts'
import type { Objects } from './objects.ts'

/**
 * A request by POST. In its texts `<client>` stands for the number of the client, `<n>` for the number of its change,
 * `<key>` for the number of the key whose turn it is, `<even>` for `true` or `false` in turns, and `<answer>` for what
 * was taken from the answer before.
 */
export interface Asked {
  /** Below /v1. */
  readonly path: string
  readonly body: string
  /** A second request, with the text between `after` and the next quote of the first one's answer. */
  readonly next?: { readonly after: string; readonly asked: Asked }
}

/** A change: a request after which no answer may come from the state before. */
export interface Change {
  /** Prepares so many clients. @returns one change as each of them asks for it */
  prepare(node: Api, clients: number): Promise<Asked>
  /** The token calls that it cannot do without. */
  token(objects: Objects): void
  /** The change is two requests: the first stores rows, the second removes them again. */
  readonly undoes?: true
}

/** By the title of its row. */
export type Changes = Readonly<Record<string, Change>>

/** How many keys each client has where they take turns, and how many changes each turn has. */
export const [keysOfClient, changesOfKey] = [200, 10]

/** Sends the n-th change of a client; its second request is left out. */
export async function ask(node: Api, { path, body }: Asked, client: number, n: number): Promise<void> {
  const values: Readonly<Record<string, string>> = {
    client: String(client),
    n: String(n),
    key: String(Math.floor(n / changesOfKey) % keysOfClient),
    even: String(n % 2 === 0),
  }
  const filled = (text: string): string => text.replace(/<(\w+)>/g, (whole, name) => values[name] ?? whole)
  await node.call('POST', filled(path), JSON.parse(filled(body)), client)
}
