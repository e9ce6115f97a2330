import { type ChildProcess, spawn } from 'node:child_process'
import { Socket } from 'node:net'
import { type Envelope, enclose, unwrapMessage } from '../envelope.ts'
import type { ListeningSocket } from '../listening.ts'
import { type Handover, handoverVersion, type PeerMessage, type ToPredecessor, type ToSuccessor } from './handover.ts'
import { lineDescriptor, NearLine } from './line.ts'
import { Peer } from './peer.ts'

export interface SuccessorOptions {
  /** Node and the program, with its arguments. */
  readonly command: readonly string[]
  /** Whether this process took over itself, and passes on the line to the first one. */
  readonly follows: boolean
  readonly handover: Omit<Handover, 'sockets'>
  readonly sockets: ReadonlyMap<string, ListeningSocket>
  /** How long its first worker, and then each further one, may take to serve. */
  readonly deadlineMilliseconds: number
  /** Called when one worker more serves. */
  onProgress(): void
  onPeer(message: PeerMessage): void
}

const patienceMilliseconds = 1000

/** The supervisor that takes over from this one, a child of it. */
export class Successor {
  /** Resolves when it serves. Rejects with the reason why it never will; it is gone then, or about to be. */
  readonly ready: Promise<void>
  /** Resolves when its process has ended. */
  readonly gone: Promise<void>
  /** Only in the first process. */
  readonly line: NearLine | undefined
  readonly peer: Peer
  readonly #process: ChildProcess

  constructor({ command, follows, handover, sockets, deadlineMilliseconds, onProgress, onPeer }: SuccessorOptions) {
    const listed = [...sockets]
    const [node = '', ...program] = command
    const end = follows ? lineDescriptor : 'pipe'
    this.#process = spawn(node, [...process.execArgv, ...program], {
      stdio: ['ignore', 1, 2, 'ipc', end, ...listed.map(([, socket]) => socket.descriptor)],
    })
    // Node leaves it unset if descriptors run out; its error follows.
    const line = (this.#process.stdio as ChildProcess['stdio'] | undefined)?.[lineDescriptor]
    this.line = line instanceof Socket ? new NearLine(line) : undefined
    this.peer = new Peer(
      (message) => this.post(message),
      () => this.kill(),
    )
    const ready = Promise.withResolvers<void>()
    const fail = (reason: string) => {
      ready.reject(new Error(reason))
    }
    const timer = setTimeout(
      () => fail(`no worker of it came to serve within ${deadlineMilliseconds / 1000} s`),
      deadlineMilliseconds,
    )
    this.ready = ready.promise.finally(() => clearTimeout(timer))
    this.gone = new Promise((resolve) => {
      this.#process.once('error', (error) => {
        fail(`it cannot be started: ${error.message}`)
        resolve()
      })
      this.#process.once('exit', (code, signal) => {
        fail(signal ? `it was killed by ${signal}` : `it ended with exit code ${code}; its own message stands above`)
        resolve()
      })
    })
    this.#process.on('message', (envelope: Envelope<ToPredecessor>) => {
      try {
        const message = unwrapMessage(envelope, handoverVersion)
        if (message.type === 'ready') ready.resolve()
        else if (message.type === 'progress') {
          timer.refresh()
          onProgress()
        } else if (message.type === 'failed') fail(message.reason)
        else onPeer(message)
      } catch (error) {
        fail((error as Error).message)
      }
    })
    const inherited = listed.map(
      ([address, { owned }], index) => [address, { descriptor: lineDescriptor + 1 + index, owned }] as const,
    )
    this.post({ type: 'handover', handover: { ...handover, sockets: inherited } })
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  post(message: ToSuccessor): void {
    if (this.#process.connected) this.#process.send(enclose(message, handoverVersion), () => {})
  }

  /** Ends it with its workers, which it kills itself as long as it can: a hung worker would not notice its death. */
  kill(): void {
    this.post({ type: 'kill' })
    setTimeout(() => this.#process.kill('SIGKILL'), patienceMilliseconds).unref()
  }
}
