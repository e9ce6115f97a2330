import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Client, createClient } from './client.ts'
import { createDatabase, type TestDatabase } from './database.ts'
import { runDirectory } from './directory.ts'
import { createToken, type TestToken } from './token.ts'

const main = join(import.meta.dirname, '../../src/main.ts')

export interface ServerOptions {
  readonly workers?: number
  /** Merged into the configuration's top level. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Set in the server's environment, e.g. for the fault shim. */
  readonly environment?: Readonly<Record<string, string>>
  readonly rootToken?: string
  /** The PKCS#11 module, when it is not the token's own. */
  readonly library?: string
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

/** Initialises a cluster on a fresh token and a fresh database and serves it on a free port of the loopback. */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const { joins } = options
  const token = joins?.token ?? (await createToken('server'))
  const borrowed = joins?.database ?? options.database
  const database = borrowed ?? (await createDatabase())
  const directory = mkdtempSync(join(runDirectory(), 'node-'))
  const pinFile = join(directory, 'pin')
  writeFileSync(pinFile, `${token.pin}\n`, { mode: 0o600 })
  const configFile = join(directory, 'config.json')
  let address = '127.0.0.1:0'
  const writeConfig = (): void =>
    writeFileSync(
      configFile,
      JSON.stringify({
        listeners: [{ address }],
        database: { url: database.url },
        pkcs11: { library: options.library ?? token.library, token: { label: token.label }, pin: { file: pinFile } },
        stateDirectory: join(directory, 'state'),
        workers: options.workers ?? 1,
        // Each test has audit files in a directory of its own.
        audit: { directory: '/' },
        ...options.config,
      }),
    )
  writeConfig()

  let output = ''
  let child: ChildProcess | undefined
  const launch = (verb: string, extra: Record<string, string> = {}): ChildProcess => {
    const started = spawn(process.execPath, [main, verb, '--config', configFile], {
      env: { ...process.env, ...options.environment, ...extra },
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

  if (joins === undefined) {
    const init = launch('init', options.rootToken === undefined ? {} : { STRONGROOM_ROOT_TOKEN: options.rootToken })
    if ((await ended(init)) !== 0) throw fail('init failed')
  }
  const rootToken = joins?.rootToken ?? options.rootToken ?? /^root_token:\s+(\S+)/m.exec(output)?.[1]
  const unsealSecret = joins?.unsealSecret ?? /^unseal_secret:\s+(\S+)/m.exec(output)?.[1] ?? ''
  if (rootToken === undefined) throw fail('init printed no root token')

  let url = ''
  const server: TestServer = {
    get url() {
      return url
    },
    get pid() {
      return child?.pid ?? 0
    },
    ...{ rootToken, unsealSecret, token, database, configFile, stateDirectory: join(directory, 'state') },
    output: () => output,
    client: (credential = rootToken) => createClient(() => url, credential),
    async start() {
      child = launch('server')
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
      if (borrowed === undefined) await database[Symbol.asyncDispose]()
    },
  }
  await server.start()
  return server
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
