/** Background work of the worker that holds its lease. `fence` is compared inside every transaction of the job. */
export interface Job {
  readonly name: string
  readonly everySeconds: number
  run(signal: AbortSignal, fence: bigint): Promise<void>
}

/** The right to do a job's work: its name and the fence of its lease, compared in each transaction (`tx.fence`). */
export interface Claim {
  readonly job: string
  readonly fence: bigint
}
