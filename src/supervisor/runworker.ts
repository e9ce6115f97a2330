import type { Socket } from 'node:net'
import { systemClock } from '../clock.ts'
import { Secrets } from '../config/secrets.ts'
import { ApiError, unavailable } from '../errors.ts'
import { freeze } from '../freeze.ts'
import { createLog, type Logger } from '../log.ts'
import type { InFlightRequest } from '../metrics/inflight.ts'
import { residentBytes } from '../metrics/resident.ts'
import type { WorkerSnapshots } from '../metrics/snapshot.ts'
import type { Workload, WorkloadOptions } from '../workload.ts'
import { type Envelope, enclose, unwrapMessage } from './envelope.ts'
import { failureKind } from './failure.ts'
import { Inquiry } from './inquiry.ts'
import type { FromWorker, ToWorker } from './messages.ts'

const beatMilliseconds = 1000
const farewellMilliseconds = 1000

/**
 * Makes this process a worker: it obeys the supervisor's messages, beats from the event loop that serves, and ends with
 * the IPC channel (a killed supervisor leaves no worker behind).
 */
export function runWorker(create: (options: WorkloadOptions) => Promise<Workload>): void {
  const worker = new WorkerProcess(create)
  process.on('message', (envelope: Envelope<ToWorker>, connection?: Socket) => worker.take(envelope, connection))
  process.on('disconnect', end)
  process.on('uncaughtException', (error) => worker.fail(error))
  // A terminal sends its signals to the whole group; the supervisor decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
  const beat = () => tell({ type: 'beat', rssBytes: residentBytes() })
  setInterval(beat, beatMilliseconds)
  beat()
}

function tell(message: FromWorker, sent: () => void = () => {}): void {
  if (process.connected) process.send?.(enclose(message), undefined, undefined, sent)
  else sent()
}

/** process.exit would wait for a thread that hangs inside the token, and for ever. */
const end = (): void => {
  process.kill(process.pid, 'SIGKILL')
}

type Listed = Extract<ToWorker, { type: 'requests' }>

/** @throws ApiError 503 when requests are missing: the answer has no place to say so */
function complete({ requests, missing = 0 }: Listed): readonly InFlightRequest[] {
  if (missing > 0) throw unavailable(`${missing} of the workers of this node did not tell their requests in time`)
  return requests
}

/** An unseal that failed so leaves the node sealed; a seal holds until the restart. */
const undurable = (): ApiError =>
  new ApiError(500, 'this node is sealed, but its state directory cannot be written; a restart may unseal it')

class WorkerProcess {
  readonly #create: (options: WorkloadOptions) => Promise<Workload>
  #log: Logger = createLog('info')
  #workload: Workload | undefined
  /** One order after the other: a seal that arrives while the server is being built is followed when it is. */
  #turn: Promise<void> = Promise.resolve()
  /** Callers that wait until the whole node has followed a seal or unseal. */
  #requesters: PromiseWithResolvers<boolean>[] = []
  #forgetting = false
  readonly #gathering = new Inquiry<WorkerSnapshots>((question) => tell({ type: 'gather', question }))
  readonly #listing = new Inquiry<Listed>((question) => tell({ type: 'askRequests', question }))
  /** Texts on their way to standard output. */
  readonly #printing = new Map<number, (written: boolean) => void>()
  #sequence = 0

  constructor(create: (options: WorkloadOptions) => Promise<Workload>) {
    this.#create = create
  }

  take(envelope: Envelope<ToWorker>, connection?: Socket): void {
    try {
      const message = unwrapMessage(envelope)
      if (message.type === 'connection') this.#accept(message.address, connection)
      else this.#receive(message)
    } catch (error) {
      this.fail(error)
    }
  }

  /** @param connection undefined when the client was gone before it came here */
  #accept(address: string, connection: Socket | undefined): void {
    tell({ type: 'taken' })
    if (connection && this.#workload) this.#workload.accept(address, connection)
    else connection?.destroy()
  }

  #receive(message: ToWorker): void {
    if (message.type === 'poll') this.#workload?.poll()
    else if (message.type === 'reopen') this.#reopen().catch((error) => this.fail(error))
    else if (message.type === 'printed') this.#printed(message)
    else if (message.type === 'measure') this.#measure(message.sequence)
    else if (message.type === 'gathered') this.#gathering.answered(message.gathered, message.question)
    else if (message.type === 'listRequests') this.#listRequests(message.sequence)
    else if (message.type === 'requests') this.#listing.answered(message, message.question)
    else if (message.type === 'ended') void this.#forget(message.ids)
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
        this.#tellRequesters(message)
        break
      case 'announceEnd':
        this.#workload?.announceEnd()
    }
  }

  async #start({ config, secrets, sealed, sharedLog }: Extract<ToWorker, { type: 'start' }>): Promise<void> {
    this.#log = createLog(config.log.level)
    this.#workload = await this.#create({
      config: freeze(config),
      secrets: new Secrets(secrets),
      log: this.#log,
      clock: systemClock,
      sealed,
      sharedLog,
      nudge: () => tell({ type: 'nudge' }),
      onFatal: (reason) => this.fail(reason),
      announce: (id) => tell({ type: 'incarnation', id }),
      requestSeal: (wanted) => {
        const requester = Promise.withResolvers<boolean>()
        this.#requesters.push(requester)
        tell({ type: 'seal', sealed: wanted })
        return requester.promise
      },
      print: (lines) => this.#print(lines),
      gather: () => this.#gathering.ask(),
      listInFlight: async () => complete(await this.#listing.ask()),
    })
    await this.#workload.listen()
    tell({ type: 'ready' })
  }

  #tellRequesters({ sealed, problem }: Extract<ToWorker, { type: 'sealDone' }>): void {
    for (const { resolve, reject } of this.#requesters.splice(0)) {
      if (problem === undefined) resolve(sealed)
      else reject(undurable())
    }
  }

  /** A server that is being built may have opened files already, so they are reopened once it is built. */
  async #reopen(): Promise<void> {
    if (this.#workload === undefined) await this.#turn
    await this.#workload?.reopen()
  }

  #print(lines: string): Promise<boolean> {
    const sequence = ++this.#sequence
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#printing.set(sequence, resolve)
    tell({ type: 'print', sequence, lines })
    return promise
  }

  #printed({ sequence, written }: Extract<ToWorker, { type: 'printed' }>): void {
    this.#printing.get(sequence)?.(written)
    this.#printing.delete(sequence)
  }

  #measure(sequence: number): void {
    tell({ type: 'measured', sequence, snapshot: this.#workload?.snapshot() ?? [] })
  }

  #listRequests(sequence: number): void {
    tell({ type: 'listed', sequence, requests: this.#workload?.inFlight() ?? [] })
  }

  /**
   * Only tidies up: while the database is away the supervisor keeps the ids and sends them again, several times while
   * one attempt lasts.
   */
  async #forget(ids: readonly string[]): Promise<void> {
    if (this.#forgetting || this.#workload === undefined) return
    this.#forgetting = true
    try {
      await this.#workload.forget(ids)
      tell({ type: 'forgotten', ids })
    } catch (error) {
      this.#log.warn({ err: error }, 'registrations of ended processes remain')
    } finally {
      this.#forgetting = false
    }
  }

  async #drain(): Promise<void> {
    await this.#workload?.drain()
    process.exit(0)
  }
}
