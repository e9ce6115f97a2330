import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Client, createClient } from './client.ts'
import { type NodeSettings, stateDirectoryOf, writeConfiguration } from './configuration.ts'
import { createDatabase, type TestDatabase } from './database.ts'
import { runDirectory } from './directory.ts'
import { initCluster, main } from './init.ts'
import { type Cluster, copyCluster } from './template/cluster.ts'
import { createToken, type TestToken } from './token.ts'

export interface ServerOptions extends NodeSettings {
  /** Set in the server's environment, e.g. for the fault shim. */
  readonly environment?: Readonly<Record<string, string>>
  readonly rootToken?: string
  /** A database that the caller disposes. */
  readonly database?: TestDatabase
  /** Another node's cluster, on whose token and database this one serves too. It must outlive this one. */
  readonly joins?: TestServer
}

/** A whole node: token, database, supervisor and workers, as an operator runs them. */
export interface TestServer extends AsyncDisposable {
  readonly url: string
  readonly rootToken: string
  readonly unsealSecret: string
  readonly token: TestToken
  readonly database: TestDatabase
  readonly configFile: string
  readonly stateDirectory: string
  /** The supervisor's process id; 0 while the node is stopped. */
  readonly pid: number
  /** Everything the processes have written so far. */
  output(): string
  /** A client with this token; the root token when none is given. */
  client(token?: string): Client
  start(): Promise<void>
  stop(): Promise<void>
  /** SIGKILL of the supervisor; its workers end by themselves. */
  kill(): Promise<void>
}

/**
 * Serves a fresh cluster, with a token and a database of its own, on a free port of the loopback: a copy of the one
 * that the run has initialised, or one initialised here where the options matter to that.
 */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const { joins } = options
  const directory = mkdtempSync(join(runDirectory(), 'node-'))
  const stateDirectory = stateDirectoryOf(directory)
  const cluster = joins ?? (await createCluster(directory, options))
  const { token, database, rootToken, unsealSecret } = cluster
  let address: string | undefined
  const writeConfig = (): string => writeConfiguration(directory, cluster, options, address)
  const configFile = writeConfig()

  let output = 'said' in cluster ? cluster.said : ''
  let child: ChildProcess | undefined
  const launch = (): ChildProcess => {
    const started = spawn(process.execPath, [main, 'server', '--config', configFile], {
      env: { ...process.env, ...options.environment },
      // The channel tells the server when this process dies.
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const stream of [started.stdout, started.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    }
    return started
  }
  const fail = (what: string): Error => new Error(`${what}\n${output.slice(-4000)}`)
  const ended = (process: ChildProcess): Promise<number | null> =>
    process.exitCode !== null || process.signalCode !== null
      ? Promise.resolve(process.exitCode)
      : new Promise((resolve) => process.once('close', resolve))

  let url = ''
  const server: TestServer = {
    get url() {
      return url
    },
    get pid() {
      return child?.pid ?? 0
    },
    ...{ rootToken, unsealSecret, token, database, configFile, stateDirectory },
    output: () => output,
    client: (credential = rootToken) => createClient(() => url, credential),
    async start() {
      child = launch()
      url = await ready(child, fail)
      // The same port again after a restart, as clients expect.
      address = url.replace('http://', '')
      writeConfig()
    },
    async stop() {
      if (child === undefined) return
      child.kill('SIGTERM')
      const code = await ended(child)
      child = undefined
      if (code !== 0) throw fail(`the server ended with ${code}`)
    },
    async kill() {
      if (child === undefined) return
      child.kill('SIGKILL')
      await ended(child)
      child = undefined
    },
    async [Symbol.asyncDispose]() {
      await server.kill()
      if (joins === undefined && options.database === undefined) await database[Symbol.asyncDispose]()
    },
  }
  await server.start()
  return server
}

/** The fields of a configuration that mean nothing to `strongroom init`. */
const serving = ['audit', 'drain', 'limits', 'listeners', 'pkcs11Libraries', 'site']

/** A cluster as `init` leaves it, with this node's state directory. */
async function createCluster(directory: string, options: ServerOptions): Promise<Cluster> {
  const { database: given, rootToken, library, environment, config = {} } = options
  const matters = [given, rootToken, library, environment].some((option) => option !== undefined)
  if (!matters && Object.keys(config).every((name) => serving.includes(name))) {
    const copy = await copyCluster(stateDirectoryOf(directory))
    if (copy !== undefined) return copy
  }
  const token = await createToken('server')
  const database = given ?? (await createDatabase())
  const configFile = writeConfiguration(directory, { token, database }, options)
  const chosen = rootToken === undefined ? {} : { STRONGROOM_ROOT_TOKEN: rootToken }
  return { token, database, ...(await initCluster(configFile, { ...environment, ...chosen })) }
}

function ready(child: ChildProcess, fail: (what: string) => Error): Promise<string> {
  return new Promise((resolve, reject) => {
    const { stdout } = child
    if (stdout === null) throw new Error('the server has no standard output')
    createInterface({ input: stdout }).on('line', (line) => {
      const address = /^ready (\S+)/.exec(line)?.[1]
      if (address !== undefined) resolve(address)
    })
    child.once('close', (code) => reject(fail(`the server ended with ${code} before it was ready`)))
  })
}
