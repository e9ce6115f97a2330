import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { sharedLogDescriptor } from '../../src/supervisor/child.ts'
import type { SharedLogPlace } from '../../src/workload.ts'
import type { Question, Reply, Seen } from './worker.ts'

/** A worker in a process of its own, asked one question at a time. */
export class RemoteWorker implements AsyncDisposable {
  readonly incarnation: string
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, incarnation: string) {
    this.#child = child
    this.incarnation = incarnation
  }

  static async start(url: string, place?: SharedLogPlace): Promise<RemoteWorker> {
    const sharedLog = place && { ...place, descriptor: sharedLogDescriptor }
    const child = fork(join(import.meta.dirname, 'worker.ts'), [url, JSON.stringify(sharedLog ?? null)], {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc', place?.descriptor ?? 'ignore'],
    })
    const first = await RemoteWorker.#next(child)
    return new RemoteWorker(child, 'incarnation' in first ? first.incarnation : '')
  }

  static async #next(child: ChildProcess): Promise<Reply> {
    const [message] = await once(child, 'message')
    return message
  }

  async #ask(question: Question): Promise<Reply> {
    const reply = RemoteWorker.#next(this.#child)
    this.#child.send(question)
    return reply
  }

  async get(id: string): Promise<string | undefined> {
    const reply = await this.#ask({ ask: 'get', id })
    return 'text' in reply ? reply.text : undefined
  }

  async watch(id: string): Promise<void> {
    await this.#ask({ ask: 'watch', id })
  }

  /** Opens a transaction that has changed the row and never ends. */
  async hold(id: string): Promise<void> {
    await this.#ask({ ask: 'hold', id })
  }

  async seen(): Promise<Seen[]> {
    const reply = await this.#ask({ ask: 'seen' })
    return 'seen' in reply ? reply.seen : []
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Ends the process without a chance to say goodbye. */
  async kill(): Promise<void> {
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.send({ ask: 'stop' })
    await exit
  }
}
