import type { ChildProcess, StdioOptions } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ended, ending, gone, spawnBound, stop } from './child.ts'

/** sockaddr_un.sun_path holds 108 bytes with its final zero (unix(7)). */
const longestSocketPathBytes = 107
/** Crash recovery of a big database takes its time. */
const readySeconds = 120
/** A clean shutdown writes all dirty pages. */
const stopSeconds = 60

export interface MariaDbOptions {
  /** Private to the server: data, log and socket. Made when absent. */
  readonly directory: string
  /** Made when absent. */
  readonly schema: string
  /** False only in tests: commits then survive the death of the server, but not of the machine. */
  readonly durable: boolean
  /** Further arguments of the server, which win over ours. */
  readonly args?: readonly string[]
  /** Descriptors that the server keeps open as long as it lives (a lock). */
  readonly descriptors?: readonly number[]
}

/** A running MariaDB, reachable only by a unix socket in a 0700 directory, which is why root has no password. */
export interface MariaDb extends AsyncDisposable {
  readonly socket: string
  readonly url: string
  readonly process: ChildProcess
}

/**
 * Starts a private MariaDB, making its data directory first when it is absent.
 * @throws Error with the end of the server's log when it does not come up
 */
export async function startMariaDb(options: MariaDbOptions): Promise<MariaDb> {
  const { directory, schema } = options
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  chmodSync(directory, 0o700)
  const data = join(directory, 'data')
  mkdirSync(join(directory, 'tmp'), { recursive: true })
  const log = join(directory, 'mariadb.log')
  const descriptors = options.descriptors ?? []
  if (!existsSync(data)) await install(directory, log, descriptors)
  const first = join(directory, 'first.sql')
  writeFileSync(first, `CREATE DATABASE IF NOT EXISTS \`${schema}\` CHARACTER SET utf8mb4;\n`)
  const { socket, temporary } = socketFor(directory)
  const args = [
    ...common(data),
    `--socket=${socket}`,
    '--skip-networking',
    `--log-error=${log}`,
    `--pid-file=${join(directory, 'mariadb.pid')}`,
    `--init-file=${first}`,
    '--character-set-server=utf8mb4',
    `--innodb-flush-log-at-trx-commit=${options.durable ? 1 : 2}`,
    `--innodb-doublewrite=${options.durable ? 'ON' : 'OFF'}`,
    '--max-connections=500',
    ...(options.args ?? []),
  ]
  const stdio: StdioOptions = ['ignore', 'ignore', 'ignore', ...descriptors]
  const child = spawnBound('mariadbd', args, { env: environment(directory), stdio })
  const halt = async (): Promise<void> => {
    await stop(child, stopSeconds)
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true })
  }
  try {
    await answering(child, socket)
  } catch (cause) {
    await halt()
    throw new Error(`MariaDB did not start: it ${ending(child)}; the end of ${log}:\n${tail(log)}`, { cause })
  }
  const url = `mysql://root@localhost/${schema}?socketPath=${encodeURIComponent(socket)}`
  return { socket, url, process: child, [Symbol.asyncDispose]: halt }
}

/** Through a link, because the script fails on a space in a directory's name. */
async function install(directory: string, log: string, descriptors: readonly number[]): Promise<void> {
  const short = shortDirectory()
  const output = openSync(log, 'a')
  try {
    symlinkSync(directory, join(short, 'd'))
    const args = [...common(join(short, 'd', 'data')), '--auth-root-authentication-method=normal', '--skip-test-db']
    const stdio: StdioOptions = ['ignore', output, output, ...descriptors]
    const child = spawnBound('mariadb-install-db', args, { env: environment(directory), stdio })
    await ended(child)
    if (child.exitCode !== 0) throw new Error(`mariadb-install-db ${ending(child)}; the end of ${log}:\n${tail(log)}`)
    chmodSync(join(directory, 'data'), 0o700)
  } finally {
    closeSync(output)
    rmSync(short, { recursive: true })
  }
}

/** `--user=root`: the mysql user could not enter a data directory below root's home, which is often 0700. */
function common(data: string): string[] {
  const root = process.getuid?.() === 0 ? ['--user=root'] : []
  return ['--no-defaults', ...root, `--datadir=${data}`]
}

/**
 * The server lives in /usr/sbin, which is not in everybody's PATH. It has a directory for temporary files of its own,
 * because a starting server removes the temporary tables of all servers that share one.
 */
const environment = (directory: string): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/bin`,
  TMPDIR: join(directory, 'tmp'),
})

/** In the directory, or in a temporary one of its own when that path would be too long for a socket. */
function socketFor(directory: string): { socket: string; temporary?: string } {
  const near = join(directory, 'mariadb.sock')
  if (Buffer.byteLength(near) <= longestSocketPathBytes) return { socket: near }
  const temporary = shortDirectory()
  return { socket: join(temporary, 'mariadb.sock'), temporary }
}

/** A new directory of our own with a short path. */
function shortDirectory(): string {
  const parent = Buffer.byteLength(tmpdir()) <= 64 ? tmpdir() : '/tmp'
  return mkdtempSync(join(parent, 'strongroom-'))
}

/** Resolves when the server greets on its socket, which it does only after recovery and the init file. */
async function answering(child: ChildProcess, socket: string): Promise<void> {
  const over = performance.now() + readySeconds * 1000
  const failed = ended(child).then(() => Promise.reject(new Error('ended')))
  failed.catch(() => {})
  while (!(await Promise.race([greets(socket), failed]))) {
    if (gone(child) || performance.now() > over) throw new Error(`no answer within ${readySeconds} s`)
    await delay(20)
  }
}

const greets = (socket: string): Promise<boolean> =>
  new Promise((resolve) => {
    const connection = connect(socket)
    connection.once('data', () => resolve(true)).once('error', () => resolve(false))
    connection.once('data', () => connection.destroy()).once('close', () => resolve(false))
  })

function tail(log: string): string {
  return existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(-15).join('\n') : '(no log)'
}
