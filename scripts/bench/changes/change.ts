import type { StrongroomNode } from '../node.ts'
import type { Objects } from './objects.ts'

/** One request of a client; the n-th of that client. */
export type Step = (client: number, n: number) => Promise<void>

/** A change: a request after which nobody may be answered from what was before. */
export interface Change {
  /** Makes what it takes for so many clients. @returns one change as a client asks for it */
  prepare(node: StrongroomNode, clients: number): Promise<Step>
  /** The token calls that it cannot do without. */
  token(objects: Objects): void
  /** It is two: the first stores rows, the second removes them again. */
  readonly undoes?: true
}

/** By the title of its row. */
export type Changes = Readonly<Record<string, Change>>
