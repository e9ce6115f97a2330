import type { ChainHead, ChainNames, Pieces } from './chain.ts'

/** Makes the record that ends a file, or the one that begins the next. */
export type Boundary = (event: 'closed' | 'opened') => Pieces

/** Writes the lines of one worker to one device, in one chain. */
export interface LineWriter {
  readonly names: ChainNames
  /** The end of the chain as written. */
  readonly head: ChainHead
  /** Names the place of its lines: a file, `stdout`, or an address. */
  readonly path: string
  /** The error that kept the last lines from being written, if any. */
  readonly fault: unknown
  /**
   * Writes a record as the next line.
   * @returns whether it is written; never rejects
   */
  write(record: Pieces): Promise<boolean>
  /**
   * Switches to the file that the path names now.
   * @returns whether there was another file
   * @throws the system's Error when it cannot be opened or written: the old file stays in use
   */
  reopen(boundary: Boundary): Promise<boolean>
  /** Lets go of the device, once every line offered is done. */
  close(): Promise<void>
}
