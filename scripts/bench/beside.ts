import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { ended, ending, gone, spawnBound } from '../embedded/child.ts'
import { type MariaDb, startMariaDb } from '../embedded/mariadb.ts'
import { embeddedToken } from '../embedded/token.ts'
import type { Count, Order, Serving } from './bare.ts'
import { cpuMicroseconds } from './cpu.ts'
import { operationOf } from './operations.ts'
import type { Server } from './server.ts'

/** The processes that Strongroom is compared with, on a token of their own. */
export class Beside implements AsyncDisposable {
  readonly #directory: string
  readonly #token: ReturnType<typeof embeddedToken>
  readonly #children: ChildProcess[] = []
  #raw: ChildProcess | undefined
  #database: MariaDb | undefined

  /** @param directory a new one, for the token and perhaps a database */
  constructor(directory: string) {
    this.#directory = directory
    this.#token = embeddedToken(directory)
  }

  /** Raw calls of one operation, for about so many milliseconds of wall time. */
  async raw(operation: string, milliseconds: number): Promise<Count> {
    if (this.#raw === undefined) {
      this.#raw = this.#start('raw')
      await answer(this.#raw)
    }
    const order: Order = { operation, milliseconds }
    this.#raw.send(order)
    return (await answer(this.#raw)) as Count
  }

  /** The minimal server of one operation. */
  async minimal(operation: string): Promise<Server> {
    const database = operationOf(operation).stored ? await this.#startDatabase() : undefined
    const child = this.#start(operation, ...(database ? [database.url] : []))
    const { port, body, bodies, path, variants } = (await answer(child)) as Serving
    const method = body === undefined && bodies === undefined ? 'GET' : 'POST'
    const turns = { ...(bodies === undefined ? {} : { bodies }), ...(variants === undefined ? {} : { variants }) }
    const request = { method, path, headers: {}, body, ...turns }
    const pids = [child.pid ?? 0, ...(database ? [database.process.pid ?? 0] : [])]
    return {
      url: `http://127.0.0.1:${port}`,
      request,
      cpuMicroseconds: () => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      child.kill()
      await ended(child)
    }
    await this.#database?.[Symbol.asyncDispose]()
  }

  async #startDatabase(): Promise<MariaDb> {
    const directory = join(this.#directory, 'mariadb')
    this.#database ??= await startMariaDb({ directory, schema: 'bench', durable: true })
    return this.#database
  }

  #start(what: string, ...more: readonly string[]): ChildProcess {
    const { library, label, pinFile, environment } = this.#token
    const script = join(import.meta.dirname, 'bare.ts')
    const child = spawnBound(process.execPath, [script, what, library, label, pinFile, ...more], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#children.push(child)
    return child
  }
}

/** The next message of the process. @throws Error when it ends instead */
async function answer(child: ChildProcess): Promise<unknown> {
  const over = new AbortController()
  const message = once(child, 'message', over).then(([first]) => first)
  const end = once(child, 'exit', over).then(() => {
    throw new Error(`a process of the benchmark ${gone(child) ? ending(child) : 'ended'}`)
  })
  try {
    return await Promise.race([message, end])
  } finally {
    for (const promise of [message, end]) promise.catch(() => {})
    over.abort()
  }
}
