import { type ChildProcess, fork, type StdioOptions } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { SharedLogPlace } from '../workload.ts'
import type { Taker } from './acceptor.ts'
import { type Envelope, enclose } from './envelope.ts'
import type { FailureKind, FromWorker, ToWorker } from './messages.ts'
import type { Phase, Role, Vitals } from './policy.ts'

export interface ChildOptions {
  readonly id: number
  readonly role: Role
  readonly script: URL
  /** Added to the supervisor's own environment. */
  readonly environment: Readonly<Record<string, string>>
  /** Of its listeners. */
  readonly addresses: readonly string[]
  /** Descriptors of the supervisor from 3 on that it must not inherit. */
  readonly hiddenDescriptors: number
  /** The supervisor's descriptor of the log that the workers share, for one that has a place in it. */
  readonly descriptor: number | undefined
  readonly sharedLog: SharedLogPlace | undefined
  /** Counts reloads: a child of an earlier generation is stale. */
  readonly generation: number
  readonly now: number
  onMessage(envelope: Envelope<FromWorker>): void
  /** Called once, when the process is gone or could not be made. */
  onEnd(ending: string): void
  /** Called with each connection that it was given and could not take, or had not taken at its end. */
  onReturned(address: string, connection: Socket): void
}

/**
 * V8's young generation would grow to three times 32 MiB after some hundred thousand requests, without measurable
 * benefit. Node's own code lies on huge pages where the kernel has them: a request runs through much of it.
 */
const execArgv = [...process.execArgv, '--max-semi-space-size=16', '--use-largepages=silent']

/** By which a worker finds the shared log. */
export const sharedLogDescriptor = 4

/** One process of the node as the supervisor sees it. */
export class Child implements Vitals, Taker {
  readonly id: number
  readonly role: Role
  readonly generation: number
  readonly sharedLog: SharedLogPlace | undefined
  /** Incarnations under which it registered for coherence. */
  readonly incarnations: string[] = []
  phase: Phase = 'starting'
  phaseSince: number
  lastBeat: number
  rssBytes = 0
  oversized = false
  /** The reason it reported for not starting or going on. */
  failure: { readonly reason: string; readonly kind: FailureKind } | undefined
  readonly #process: ChildProcess
  readonly #addresses: ReadonlySet<string>
  /** Connections given to it and not taken yet, which go to another process if it ends. */
  readonly #given: { readonly address: string; readonly connection: Socket }[] = []
  /** Whether it could not take the last one. */
  #full = false

  constructor(options: ChildOptions) {
    this.id = options.id
    this.role = options.role
    this.generation = options.generation
    this.sharedLog = options.sharedLog
    this.phaseSince = options.now
    this.lastBeat = options.now
    this.#addresses = new Set(options.addresses)
    // Standard output is the command's own answer, so a child's goes to standard error, and so does what would
    // otherwise be an inherited listening socket. No secret is an argument or a variable: those of a process can be
    // read from outside.
    const shared = (options.sharedLog && options.descriptor) ?? 2
    const stdio: StdioOptions = ['ignore', 2, 2, 'ipc', shared, ...Array<number>(options.hiddenDescriptors).fill(2)]
    const env = { ...process.env, ...options.environment }
    this.#process = fork(fileURLToPath(options.script), [], { execArgv, env, stdio })
    let ended = false
    const end = (ending: string) => {
      if (ended) return
      ended = true
      options.onEnd(ending)
    }
    this.#process.on('message', (envelope: Envelope<FromWorker>) => options.onMessage(envelope))
    // Node's own answer to a descriptor that did not arrive: the process had no room for it (MSG_CTRUNC of recvmsg(2)).
    this.#process.on('internalMessage', ({ cmd }: { readonly cmd?: string }) => {
      const missed = cmd === 'NODE_HANDLE_NACK' ? this.#given.shift() : undefined
      if (missed === undefined) return
      this.#full = true
      options.onReturned(missed.address, missed.connection)
    })
    this.#process.on('exit', (code, signal) => end(signal ? `killed by ${signal}` : `exit code ${code}`))
    // Only now has every message been read, including those about connections that it took.
    this.#process.on('close', () => {
      for (const { address, connection } of this.#given.splice(0)) options.onReturned(address, connection)
    })
    this.#process.on('error', (error) => {
      if (this.pid === undefined) end(error.message)
    })
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** Whether it has taken every connection that it was given. */
  get free(): boolean {
    return this.#given.length === 0
  }

  enter(phase: Phase, now: number): void {
    this.phase = phase
    this.phaseSince = now
  }

  /** Whether it has no room for connections, as far as is known. */
  get full(): boolean {
    return this.#full
  }

  /** It lives, and may have room again. */
  beat(now: number, rssBytes: number): void {
    this.lastBeat = now
    this.rssBytes = rssBytes
    this.#full = false
  }

  serves(address: string): boolean {
    return this.#process.connected && !this.#full && this.#addresses.has(address)
  }

  give(address: string, connection: Socket): void {
    this.#given.push({ address, connection })
    const message: ToWorker = { type: 'connection', address }
    // Kept open, because Node forgets one that it was sending when the receiver died.
    this.#process.send(enclose(message), connection, { keepOpen: true }, () => {})
  }

  /** It has taken the first connection given to it, so our descriptor of it is closed. */
  taken(): void {
    this.#given.shift()?.connection.destroy()
  }

  /** A message to a process that is gone is lost: its end is reported anyway. */
  send(message: ToWorker): void {
    if (this.#process.connected) this.#process.send(enclose(message), () => {})
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }
}
