import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { ended, ending, stop } from '../embedded/child.ts'
import { type MariaDb, startMariaDb } from '../embedded/mariadb.ts'
import { embeddedToken } from '../embedded/token.ts'
import { type Api, ApiClient } from './api.ts'
import { childrenOf, cpuMicroseconds, residentBytes } from './cpu.ts'
import type { LoadRequest, Server } from './server.ts'

/** The checkout that this file belongs to. */
export const ownCheckout = resolve(import.meta.dirname, '../..')

export interface NodeOptions {
  /** A new one: database, token and state lie in it. */
  readonly directory: string
  /** Where the processes write V8 CPU profiles when they end. */
  readonly profiles: string | undefined
  /** A checkout of the project, set up, whose program is served. */
  readonly checkout: string
  /** 1 unless given. */
  readonly workers?: number
  /** The address where it receives nudges, and the nodes that it nudges: HOST:PORT. */
  readonly nudge?: { readonly address: string; readonly peers: readonly string[] }
  /** A node whose database and token it shares, and which outlives it. */
  readonly joins?: StrongroomNode
}

type EmbeddedToken = ReturnType<typeof embeddedToken>

/** Strongroom as it is served: supervisor, one worker, a durable MariaDB, a SoftHSM token. */
export class StrongroomNode implements Api, AsyncDisposable {
  url = ''
  readonly database: MariaDb
  readonly token: EmbeddedToken
  readonly rootToken: string
  /** Path of its configuration, for commands beside it. */
  readonly configuration: string
  /** Where its audit files may lie. */
  readonly auditDirectory: string
  readonly #joined: boolean
  readonly #serve: () => ChildProcess
  #supervisor: ChildProcess | undefined
  #client: ApiClient | undefined

  private constructor(parts: {
    rootToken: string
    database: MariaDb
    token: EmbeddedToken
    serve: () => ChildProcess
    joined: boolean
    configuration: string
  }) {
    this.configuration = parts.configuration
    this.auditDirectory = join(dirname(parts.configuration), 'state', 'audit')
    this.token = parts.token
    this.#joined = parts.joined
    this.#serve = parts.serve
    this.rootToken = parts.rootToken
    this.database = parts.database
  }

  static async start(options: NodeOptions): Promise<StrongroomNode> {
    const { directory, checkout, joins } = options
    mkdirSync(directory)
    const token = joins?.token ?? embeddedToken(join(directory, 'token'))
    const database =
      joins?.database ?? (await startMariaDb({ directory: join(directory, 'mariadb'), schema: 'bench', durable: true }))
    try {
      const file = join(directory, 'strongroom.yaml')
      writeFileSync(file, JSON.stringify(configuration(options, database, token)))
      const main = join(checkout, 'src', 'main.ts')
      const rootToken = joins?.rootToken ?? (await initialise(main, file))
      const profile = options.profiles ? { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${options.profiles}` } : {}
      const serve = () =>
        spawn(process.execPath, [main, 'server', '--config', file], {
          env: { ...process.env, ...profile },
          stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
        })
      const node = new StrongroomNode({
        ...{ rootToken, database, token, serve, joined: joins !== undefined, configuration: file },
      })
      await node.#start()
      return node
    } catch (error) {
      if (joins === undefined) await database[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Stops and starts the program; database and token stay. @returns milliseconds of the start */
  async restart(): Promise<number> {
    await this.#stop()
    const began = performance.now()
    await this.#start()
    return performance.now() - began
  }

  async #start(): Promise<void> {
    this.#supervisor = this.#serve()
    this.url = await ready(this.#supervisor)
    this.#client = new ApiClient(this.url, this.rootToken)
  }

  async #stop(): Promise<void> {
    await this.#client?.[Symbol.asyncDispose]()
    this.#client = undefined
    if (this.#supervisor) await stop(this.#supervisor, 60)
  }

  send(method: string, path: string, body?: object, client?: number): Promise<string> {
    return this.#running.send(method, path, body, client)
  }

  call(method: string, path: string, body?: object, client?: number): Promise<Record<string, unknown>> {
    return this.#running.call(method, path, body, client)
  }

  get #running(): ApiClient {
    if (this.#client === undefined) throw new Error('the node is stopped')
    return this.#client
  }

  /** This node under one request. Its cost is that of supervisor, worker and database together. */
  under(request: LoadRequest): Server {
    return { url: this.url, request, cpuMicroseconds: () => this.cpuMicroseconds }
  }

  /** Of supervisor, worker and database since they started. */
  get cpuMicroseconds(): number {
    const pids = [this.#supervisor?.pid ?? 0, this.database.process.pid ?? 0]
    return pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0)
  }

  /** The supervisor's process id; 0 while the program is stopped. */
  get pid(): number {
    return this.#supervisor?.pid ?? 0
  }

  /** Resident memory of the one worker. */
  get workerBytes(): number {
    const [worker = 0] = childrenOf(this.#supervisor?.pid ?? 0)
    return residentBytes(worker)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop()
    if (!this.#joined) await this.database[Symbol.asyncDispose]()
  }
}

const configuration = (options: NodeOptions, database: MariaDb, token: EmbeddedToken) => ({
  listeners: [{ address: '127.0.0.1:0' }],
  database: { url: database.url },
  pkcs11: {
    library: token.library,
    environment: token.environment,
    token: { label: token.label },
    pin: { file: token.pinFile },
  },
  stateDirectory: join(options.directory, 'state'),
  workers: options.workers ?? 1,
  ...(options.nudge ? { cluster: { nudge: options.nudge } } : {}),
})

/** @returns the root token */
async function initialise(main: string, file: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [main, 'init', '--config', file])
  const token = /^root_token:\s+(\S+)/m.exec(stdout)?.[1]
  if (token === undefined) throw new Error(`init printed no root token:\n${stdout}`)
  return token
}

function ready(server: ChildProcess): Promise<string> {
  return new Promise((done, fail) => {
    if (server.stdout === null) throw new Error('the server has no standard output')
    createInterface({ input: server.stdout }).on('line', (line) => {
      const address = /^ready (\S+)/.exec(line)?.[1]
      if (address !== undefined) done(address)
    })
    ended(server).then(() => fail(new Error(`the server ${ending(server)} before it was ready`)), fail)
  })
}
