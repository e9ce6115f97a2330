import cluster, { type Worker } from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { closeUntaken } from './handoff.ts'
import type { FailureKind, FromWorker, ToWorker } from './messages.ts'
import type { Phase, Role, Vitals } from './policy.ts'

export interface ChildOptions {
  readonly role: Role
  readonly script: URL
  /** Added to the supervisor's own environment. */
  readonly environment: Readonly<Record<string, string>>
  /** Counts reloads: a child of an earlier generation is stale. */
  readonly generation: number
  readonly now: number
  onMessage(message: FromWorker): void
  /** Called once, when the process is gone or could not be made. */
  onEnd(ending: string): void
}

/** V8's young generation would grow to three times 32 MiB after some hundred thousand requests, without measurable benefit. */
const execArgv = [...process.execArgv, '--max-semi-space-size=16']

/** One process of the node as the supervisor sees it. */
export class Child implements Vitals {
  readonly role: Role
  readonly generation: number
  /** Incarnations under which it registered for coherence. */
  readonly incarnations: string[] = []
  phase: Phase = 'starting'
  phaseSince: number
  lastBeat: number
  rssBytes = 0
  oversized = false
  /** The reason it reported for not starting or going on. */
  failure: { readonly reason: string; readonly kind: FailureKind } | undefined
  readonly #worker: Worker

  constructor(options: ChildOptions) {
    this.role = options.role
    this.generation = options.generation
    this.phaseSince = options.now
    this.lastBeat = options.now
    cluster.schedulingPolicy = cluster.SCHED_RR
    // Standard output is the command's own answer, so a child's goes to standard error. No secret is an argument or a
    // variable: those of a process can be read from outside.
    const exec = fileURLToPath(options.script)
    cluster.setupPrimary({ exec, execArgv, args: [], stdio: ['ignore', 2, 2, 'ipc'] })
    this.#worker = cluster.fork(options.environment)
    closeUntaken(this.#worker)
    let ended = false
    const end = (ending: string) => {
      if (!ended) options.onEnd(ending)
      ended = true
    }
    this.#worker.on('message', (message: FromWorker) => options.onMessage(message))
    this.#worker.on('exit', (code, signal) => end(signal ? `killed by ${signal}` : `exit code ${code}`))
    this.#worker.on('error', (error) => {
      if (this.pid === undefined) end(error.message)
    })
  }

  get id(): number {
    return this.#worker.id
  }

  get pid(): number | undefined {
    return this.#worker.process.pid
  }

  enter(phase: Phase, now: number): void {
    this.phase = phase
    this.phaseSince = now
  }

  /** A message to a process that is gone is lost: its end is reported anyway. */
  send(message: ToWorker): void {
    if (this.#worker.isConnected()) this.#worker.process.send(message, () => {})
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL')
  }
}
