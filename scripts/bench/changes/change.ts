import type { Api } from '../api.ts'
import type { Objects } from './objects.ts'

/** One request of a client; the n-th of that client. */
export type Step = (client: number, n: number) => Promise<void>

/** A change: a request after which no answer may come from the state before. */
export interface Change {
  /** Prepares so many clients. @returns one change as a client asks for it */
  prepare(node: Api, clients: number): Promise<Step>
  /** The token calls that it cannot do without. */
  token(objects: Objects): void
  /** The change is two requests: the first stores rows, the second removes them again. */
  readonly undoes?: true
}

/** By the title of its row. */
export type Changes = Readonly<Record<string, Change>>
