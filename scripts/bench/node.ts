import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { ended, ending, stop } from '../embedded/child.ts'
import { type MariaDb, startMariaDb } from '../embedded/mariadb.ts'
import { embeddedToken } from '../embedded/token.ts'
import { childrenOf, cpuMicroseconds, residentBytes } from './cpu.ts'
import type { LoadRequest, Server } from './server.ts'

/** The checkout that this file is of. */
export const ownCheckout = resolve(import.meta.dirname, '../..')

export interface NodeOptions {
  /** A new one: database, token and state lie in it. */
  readonly directory: string
  /** Where the processes write V8 CPU profiles when they end. */
  readonly profiles: string | undefined
  /** A checkout of the project, set up, whose program is served. */
  readonly checkout: string
}

/** Strongroom as it is served: supervisor, one worker, a durable MariaDB, a SoftHSM token. */
export class StrongroomNode implements AsyncDisposable {
  readonly url: string
  readonly database: MariaDb
  readonly #rootToken: string
  readonly #agent = new Agent({ keepAlive: true })
  readonly #supervisor: ChildProcess

  private constructor(parts: { url: string; rootToken: string; database: MariaDb; supervisor: ChildProcess }) {
    this.url = parts.url
    this.#rootToken = parts.rootToken
    this.database = parts.database
    this.#supervisor = parts.supervisor
  }

  static async start({ directory, profiles, checkout }: NodeOptions): Promise<StrongroomNode> {
    const main = join(checkout, 'src', 'main.ts')
    mkdirSync(directory)
    const { library, label, pinFile, environment } = embeddedToken(join(directory, 'token'))
    const database = await startMariaDb({ directory: join(directory, 'mariadb'), schema: 'bench', durable: true })
    try {
      const file = join(directory, 'strongroom.yaml')
      const config = {
        listeners: [{ address: '127.0.0.1:0' }],
        database: { url: database.url },
        pkcs11: { library, environment, token: { label }, pin: { file: pinFile } },
        stateDirectory: join(directory, 'state'),
        workers: 1,
      }
      writeFileSync(file, JSON.stringify(config))
      const { stdout: printed } = await promisify(execFile)(process.execPath, [main, 'init', '--config', file])
      const rootToken = /^root_token:\s+(\S+)/m.exec(printed)?.[1]
      if (rootToken === undefined) throw new Error(`init printed no root token:\n${printed}`)
      const supervisor = spawn(process.execPath, [main, 'server', '--config', file], {
        env: { ...process.env, ...(profiles ? { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profiles}` } : {}) },
        stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      })
      return new StrongroomNode({ url: await ready(supervisor), rootToken, database, supervisor })
    } catch (error) {
      await database[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Calls the API as root, over connections that are kept. @throws Error unless the answer is a success */
  async call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const { status, text } = await this.#send(method, path, body === undefined ? '' : JSON.stringify(body))
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
  }

  /** By node:http: fetch would cost more than what is measured. */
  #send(method: string, path: string, body: string): Promise<{ status: number; text: string }> {
    const headers = { 'X-Vault-Token': this.#rootToken, 'Content-Length': Buffer.byteLength(body) }
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
    const sent = request(`${this.url}/v1/${path}`, { method, headers, agent: this.#agent }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
    return promise
  }

  /** This node under one request. Its cost is that of supervisor, worker and database together. */
  under(request: LoadRequest): Server {
    const pids = [this.#supervisor.pid ?? 0, this.database.process.pid ?? 0]
    return {
      url: this.url,
      request,
      cpuMicroseconds: () => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0),
    }
  }

  /** Resident memory of the one worker. */
  get workerBytes(): number {
    const [worker = 0] = childrenOf(this.#supervisor.pid ?? 0)
    return residentBytes(worker)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy()
    await stop(this.#supervisor, 60)
    await this.database[Symbol.asyncDispose]()
  }
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
