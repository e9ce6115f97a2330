/**
 * `npm start`, under Node 24: one node of Strongroom with everything it needs in one directory. A private MariaDB and a
 * SoftHSM token are made there on the first start; then this process only watches MariaDB and the server's supervisor.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ended, ending, gone, spawnBound, stop } from './embedded/child.ts'
import { firstStart } from './embedded/first.ts'
import { lockDirectory } from './embedded/lock.ts'
import { startMariaDb } from './embedded/mariadb.ts'
import { embeddedToken } from './embedded/token.ts'

/** The server ends by itself at its own deadline: drain.announceSeconds and limits.drainSeconds, 900 at most. */
const drainSeconds = 960

const project = resolve(import.meta.dirname, '..')
/** The path as it was given: an upgrade follows a link in it. The data stay where they are. */
const [installation = project] = process.argv.slice(2)
const asked = new Promise<void>((stopNow) => {
  // The same signal may come twice, from the terminal and from the launcher: the first one counts.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stopNow())
})
let server: ChildProcess | undefined
// The server does upgrades; before it runs there is nothing to upgrade.
process.on('SIGUSR2', () => server?.kill('SIGUSR2'))

// Out of the environment, which every child would inherit: only `init` gets it.
const rootToken = process.env.STRONGROOM_ROOT_TOKEN
delete process.env.STRONGROOM_ROOT_TOKEN

try {
  process.exitCode = await serve(resolve(process.env.STRONGROOM_DATA ?? join(project, '.data')))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

/** Everything from the lock to the last process's end; returns the exit code. */
async function serve(data: string): Promise<number> {
  process.umask(0o077)
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const lock = lockDirectory(data)
  const first = firstStart(data)
  if (first) console.error(`first start: making a database and a token in ${data} …`)
  const token = embeddedToken(join(data, 'token'))
  await using mariadb = await startMariaDb({
    directory: join(data, 'mariadb'),
    schema: 'strongroom',
    durable: true,
    descriptors: [lock],
  })
  const file = join(data, 'strongroom.yaml')
  writeFileSync(file, configuration({ databaseUrl: mariadb.url, token, stateDirectory: join(data, 'state') }))
  const line = (command: string) => [join(installation, 'src', 'main.ts'), command, '--config', file]
  // The database is ours alone: there is no other node whose upgrade `migrate` would have to wait for.
  const [verb, output] = first ? (['init', 'inherit'] as const) : (['migrate', 'ignore'] as const)
  const preparing = spawnBound(process.execPath, line(verb), {
    env: { ...process.env, ...(first && rootToken !== undefined ? { STRONGROOM_ROOT_TOKEN: rootToken } : {}) },
    stdio: ['ignore', output, 'inherit', lock],
  })
  const code = await outcome(`strongroom ${verb}`, preparing, mariadb.process)
  if (code !== 0) return code
  first?.finished()
  // The server watches the channel: it drains once when we die. (The kernel's signal may come twice, once for each
  // thread of ours, and a second one means "at once" to it.)
  server = spawn(process.execPath, line('server'), {
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', lock, 'ipc'],
  })
  // Awaited here: the database is disposed when this function has its result.
  return await outcome('strongroom server', server, mariadb.process)
}

/** Waits until the command ends, the database dies or a signal asks to stop; the command is gone when this returns. */
async function outcome(name: string, command: ChildProcess, database: ChildProcess): Promise<number> {
  const signalled = await Promise.race([asked.then(() => true), ended(command), ended(database)])
  const alone = gone(command)
  if (!alone && gone(database)) console.error(`MariaDB ${ending(database)}: stopping`)
  await stop(command, drainSeconds)
  if (!alone) return signalled && command.exitCode === 0 ? 0 : 1
  if (command.exitCode !== 0) console.error(`${name} ${ending(command)}: stopping`)
  return command.exitCode ?? 1
}

/** YAML that is JSON; `environment` overrides any of it (STRONGROOM_WORKERS and so on). */
function configuration(parts: {
  databaseUrl: string
  token: ReturnType<typeof embeddedToken>
  stateDirectory: string
}): string {
  const { library, label, pinFile, environment } = parts.token
  const config = {
    listeners: [{ address: process.env.STRONGROOM_LISTEN ?? '127.0.0.1:8200' }],
    database: { url: parts.databaseUrl },
    pkcs11: { library, environment, token: { label }, pin: { file: pinFile } },
    stateDirectory: parts.stateDirectory,
  }
  return `# Written by npm start at every start: changes are lost. Set STRONGROOM_… variables instead.\n${JSON.stringify(config, null, 2)}\n`
}
