import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A server in a process of its own, so that its memory and its event loop are nobody else's. */
export class ServerProcess implements AsyncDisposable {
  readonly port: number
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(): Promise<ServerProcess> {
    const child = fork(fileURLToPath(new URL('servingprocess.ts', import.meta.url)), { execArgv: ['--expose-gc'] })
    const [port] = await once(child, 'message')
    return new ServerProcess(child, port)
  }

  /** Sends a message and awaits the answer, which says how the server does. */
  async ask(message: 'turns' | 'measures'): Promise<Measures> {
    const told = once(this.#child, 'message')
    this.#child.send(message)
    const [answer] = await told
    return answer
  }

  /** Stops it or lets it go on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.#child.disconnect()
    await gone
  }
}

export interface Measures {
  readonly residentBytes: number
  readonly heldBytes: number
  /** The most that was read from all connections together in one turn of the event loop, since `turns`. */
  readonly mostOfTurn: number
}
