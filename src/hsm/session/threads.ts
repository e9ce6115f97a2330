import { Worker } from 'node:worker_threads'
import type { Clock } from '../../clock.ts'
import { unavailable } from '../../errors.ts'
import { CKM } from '../constants.ts'
import { Failure } from '../faults.ts'
import type { Arguments, Operation, Result } from './operations.ts'
import { type Parcel, pack, unpack, wipe } from './parcel.ts'
import type { Order, Reply } from './thread.ts'

export interface ThreadsOptions {
  readonly library: string
  /** A call that takes longer counts as hung. Key pairs get `keyPairFactor` times as long. */
  readonly deadlineMilliseconds: number
  readonly clock: Clock
  /** A hung call of this token fails as lost, and the process goes on. */
  readonly foreign?: boolean | undefined
  /** The process must exit: neither a hung call nor the sessions of a dead thread can be recovered. */
  onFatal(reason: Error): void
}

interface Job {
  readonly name: Operation
  readonly lane: Lane
  readonly parcel: Parcel
  resolve(result: unknown): void
  reject(error: Error): void
}

const keyPairFactor = 12

/** Which queue a call waits in: the generation of an RSA pair may take seconds, and nothing else waits behind it. */
type Lane = 'keyPairs' | 'calls'
/** The most waiting calls: further ones are refused before any work begins. */
const mostWaiting: Readonly<Record<Lane, number>> = { calls: 5000, keyPairs: 100 }
const laneOf = (name: Operation, [mechanism]: readonly unknown[]): Lane =>
  name === 'generateKeyPair' && mechanism === CKM.RSA_PKCS_KEY_PAIR_GEN ? 'keyPairs' : 'calls'

/**
 * The threads' executor: worker threads that make synchronous calls, one at a time each. Key pairs have a lane of their
 * own. Everything a thread is given is copied, so that callers may reuse their buffers at once.
 */
export class Threads implements AsyncDisposable {
  /** The most calls of a lane at the same time; a thread is started when no idle one is left for a call. */
  readonly limits: Record<Lane, number> = { calls: 1, keyPairs: 1 }
  readonly #options: ThreadsOptions
  readonly #idle: Worker[] = []
  readonly #working = new Map<Worker, { readonly job: Job; readonly since: number }>()
  readonly #waiting: Record<Lane, Job[]> = { calls: [], keyPairs: [] }
  #watching = false
  #closed = false

  constructor(options: ThreadsOptions) {
    this.#options = options
  }

  /** Whether calls are under way in some thread. */
  get busy(): boolean {
    return this.#working.size > 0
  }

  /**
   * Runs an operation in a thread, on the connection of that slot and epoch.
   * @throws Failure as Connection.run does; ApiError 503 when too many calls wait already
   */
  run<N extends Operation>(slot: Uint8Array, epoch: number, name: N, args: Arguments<N>): Promise<Result<N>> {
    const lane = laneOf(name, args)
    if (this.#waiting[lane].length >= mostWaiting[lane])
      return Promise.reject(unavailable('the HSM has too much to do'))
    // Copied now, not when its turn comes: the caller may change its buffers meanwhile.
    const parcel = pack({ slot, epoch, name, args } satisfies Order)
    return new Promise((resolve, reject) => {
      this.#waiting[lane].push({ name, lane, parcel, resolve: resolve as (result: unknown) => void, reject })
      this.#dispatch(lane)
    })
  }

  /** Rejects waiting calls; running ones go on. */
  cancel(error: Error): void {
    for (const lane of Object.values(this.#waiting)) {
      for (const job of lane.splice(0)) {
        wipe(job.parcel.value)
        job.reject(error)
      }
    }
  }

  /** Ends the threads. Only when not busy: a thread inside a call cannot be stopped. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    const closed = unavailable('the HSM is closed')
    // Requests are drained before a process ends; the token of somebody else may be closed in the middle of them.
    if (this.#options.foreign) this.#abandon(closed)
    else this.cancel(closed)
    await Promise.all([...this.#idle, ...this.#working.keys()].map((worker) => worker.terminate()))
    // A thread that was inside a call ended without a reply.
    for (const { job } of this.#working.values()) job.reject(closed)
    this.#working.clear()
  }

  #dispatch(lane: Lane): void {
    while (this.#busyIn(lane) < this.limits[lane]) {
      const job = this.#waiting[lane].shift()
      if (job === undefined) return
      const worker = this.#idle.pop() ?? this.#start()
      this.#working.set(worker, { job, since: this.#options.clock.monotonic() })
      worker.ref()
      worker.postMessage(job.parcel.value, job.parcel.moved)
      if (!this.#watching) void this.#watch()
    }
  }

  #busyIn(lane: Lane): number {
    let count = 0
    for (const { job } of this.#working.values()) if (job.lane === lane) count++
    return count
  }

  #start(): Worker {
    const worker = new Worker(new URL('./thread.ts', import.meta.url), { workerData: this.#options.library })
    worker.on('message', (reply: Reply) => this.#finished(worker, reply))
    worker.on('error', (error) => this.#died(worker, error))
    worker.on('exit', () => this.#died(worker, new Error('a thread of the HSM ended')))
    return worker
  }

  #finished(worker: Worker, reply: Reply): void {
    const job = this.#working.get(worker)?.job
    this.#working.delete(worker)
    worker.unref()
    this.#idle.push(worker)
    if (job === undefined) return
    settle(job, reply)
    this.#dispatch(job.lane)
  }

  #died(worker: Worker, error: unknown): void {
    if (this.#closed) return
    this.#working.get(worker)?.job.reject(new Failure('lost', 0, 'a thread of the HSM failed'))
    this.#working.delete(worker)
    this.#options.onFatal(new Error('a thread of the HSM failed', { cause: error }))
  }

  /** Rejects all calls, inside the token and waiting. */
  #abandon(error: Error): void {
    for (const { job } of this.#working.values()) job.reject(error)
    this.cancel(error)
  }

  async #watch(): Promise<void> {
    const { clock, deadlineMilliseconds, onFatal } = this.#options
    this.#watching = true
    while (this.#working.size > 0) {
      await clock.sleep(deadlineMilliseconds / 4)
      const now = clock.monotonic()
      for (const { job, since } of this.#working.values()) {
        const factor = job.name === 'generateKeyPair' ? keyPairFactor : 1
        if (now - since < deadlineMilliseconds * factor) continue
        if (this.#options.foreign) this.#abandon(new Failure('lost', 0, 'the HSM hangs'))
        onFatal(new Error(`the HSM hangs: ${job.name} has not answered for ${Math.round(now - since)} ms`))
        this.#watching = false
        return
      }
    }
    this.#watching = false
  }
}

function settle(job: Job, reply: Reply): void {
  if ('result' in reply) job.resolve(unpack(reply.result))
  else if ('fate' in reply) job.reject(new Failure(reply.fate, reply.code, reply.name))
  else job.reject(new Error(`${job.name}: ${reply.bug}`))
}
