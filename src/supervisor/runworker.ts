import cluster from 'node:cluster'
import { systemClock } from '../clock.ts'
import { Secrets } from '../config/secrets.ts'
import { freeze } from '../freeze.ts'
import { createLog, type Logger } from '../log.ts'
import type { WorkerSnapshots } from '../metrics/snapshot.ts'
import type { Workload, WorkloadOptions } from '../workload.ts'
import { failureKind } from './failure.ts'
import type { FromWorker, ToWorker } from './messages.ts'

const beatMilliseconds = 1000
const farewellMilliseconds = 1000

/**
 * Makes this process a worker: it obeys the supervisor's messages, beats from the event loop that serves, and ends with
 * the IPC channel (a killed supervisor leaves no worker behind).
 */
export function runWorker(create: (options: WorkloadOptions) => Promise<Workload>): void {
  const worker = new WorkerProcess(create)
  process.on('message', (message: ToWorker) => worker.receive(message))
  process.on('disconnect', () => process.exit(worker.drained ? 0 : 1))
  process.on('uncaughtException', (error) => worker.fail(error))
  // A terminal sends its signals to the whole group; the supervisor decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const beat = () => tell({ type: 'beat', rssBytes: process.memoryUsage.rss() })
  setInterval(beat, beatMilliseconds)
  beat()
}

function tell(message: FromWorker, sent: () => void = () => {}): void {
  if (process.connected) process.send?.(message, undefined, undefined, sent)
  else sent()
}

/** process.exit would wait for a thread that hangs inside the token. */
const end = (): void => {
  process.kill(process.pid, 'SIGKILL')
}

class WorkerProcess {
  drained = false
  readonly #create: (options: WorkloadOptions) => Promise<Workload>
  #log: Logger = createLog('info')
  #workload: Workload | undefined
  /** One order after the other: a seal that arrives while the server is being built is followed when it is. */
  #turn: Promise<void> = Promise.resolve()
  /** Callers that wait until the whole node has followed a seal or unseal. */
  #requesters: ((sealed: boolean) => void)[] = []
  /** The pending request for the node's metrics; concurrent callers share its result. */
  #gathering: PromiseWithResolvers<WorkerSnapshots> | undefined

  constructor(create: (options: WorkloadOptions) => Promise<Workload>) {
    this.#create = create
  }

  receive(message: ToWorker): void {
    if (message.type === 'versions') this.#workload?.hear(message.message)
    else if (message.type === 'poll') this.#workload?.poll()
    else if (message.type === 'measure') this.#measure(message.sequence)
    else if (message.type === 'gathered') this.#gathered(message.gathered)
    else if (message.type === 'drain') this.#drain().catch((error) => this.fail(error))
    else this.#turn = this.#turn.then(() => this.#obey(message)).catch((error) => this.fail(error))
  }

  /** Reports the reason and ends: the process is the unit of recovery. */
  fail(error: unknown): void {
    this.#log.fatal({ err: error }, 'worker fails')
    const reason = error instanceof Error ? error.message : String(error)
    setTimeout(end, farewellMilliseconds)
    tell({ type: 'failed', reason, kind: failureKind(error) }, end)
  }

  async #obey(message: ToWorker): Promise<void> {
    switch (message.type) {
      case 'start':
        await this.#start(message)
        break
      case 'seal':
        await this.#workload?.seal(message.sealed)
        tell({ type: 'sealed', sequence: message.sequence })
        break
      case 'sealDone':
        for (const done of this.#requesters) done(message.sealed)
        this.#requesters = []
        break
      case 'ended':
        await this.#forget(message.ids)
    }
  }

  async #start({ config, secrets, sealed }: Extract<ToWorker, { type: 'start' }>): Promise<void> {
    this.#log = createLog(config.log.level)
    this.#workload = await this.#create({
      config: freeze(config),
      secrets: new Secrets(secrets),
      log: this.#log,
      clock: systemClock,
      sealed,
      send: (message) => tell({ type: 'versions', message }),
      onFatal: (reason) => this.fail(reason),
      announce: (id) => tell({ type: 'incarnation', id }),
      requestSeal: (wanted) => {
        const { promise, resolve } = Promise.withResolvers<boolean>()
        this.#requesters.push(resolve)
        tell({ type: 'seal', sealed: wanted })
        return promise
      },
      gather: () => this.#gather(),
    })
    const { addresses } = await this.#workload.listen()
    tell({ type: 'ready', addresses })
  }

  #gather(): Promise<WorkerSnapshots> {
    if (this.#gathering === undefined) {
      this.#gathering = Promise.withResolvers<WorkerSnapshots>()
      tell({ type: 'gather' })
    }
    return this.#gathering.promise
  }

  #gathered(gathered: WorkerSnapshots): void {
    this.#gathering?.resolve(gathered)
    this.#gathering = undefined
  }

  #measure(sequence: number): void {
    tell({ type: 'measured', sequence, snapshot: this.#workload?.snapshot() ?? [] })
  }

  /** Only tidies up: while the database is away the supervisor keeps the ids and says them again. */
  async #forget(ids: readonly string[]): Promise<void> {
    try {
      await this.#workload?.forget(ids)
      tell({ type: 'forgotten', ids })
    } catch (error) {
      this.#log.warn({ err: error }, 'registrations of ended processes remain')
    }
  }

  async #drain(): Promise<void> {
    await this.#workload?.drain()
    this.drained = true
    // Connections handed to us until the supervisor knew are handed back: Node's own farewell waits for that.
    if (cluster.worker?.isConnected()) cluster.worker.disconnect()
    else process.exit(0)
  }
}
