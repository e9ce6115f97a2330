import { join } from 'node:path'
import { ownCheckout, StrongroomNode } from '../node.ts'

export interface PressureBench {
  readonly directory: string
  readonly pairs: number
  readonly seconds: number
  progress(text: string): void
}

let nodes = 0

/** A new node with so many workers. */
export const startNode = ({ directory }: PressureBench, workers = 1): Promise<StrongroomNode> =>
  StrongroomNode.start({
    directory: join(directory, `pressure-${++nodes}`),
    profiles: undefined,
    checkout: ownCheckout,
    workers,
  })
