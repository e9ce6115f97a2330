import { Command, CommanderError } from 'commander'
import { product } from '../system/version.ts'
import { acceptRestoreCommand } from './acceptrestore.ts'
import { auditCommand } from './audit.ts'
import { configCommand } from './config.ts'
import { exitUsage, explainFailure } from './failure.ts'
import { initCommand } from './init.ts'
import { kekCommand } from './kek.ts'
import { migrateCommand } from './migrate.ts'
import { recoverySecretCommand } from './recoverysecret.ts'
import { reloadCommand } from './reload.ts'
import { rootTokenCommand } from './roottoken.ts'
import { serverCommand } from './server.ts'
import { statusCommand } from './status.ts'

const commands = [
  serverCommand,
  initCommand,
  reloadCommand,
  statusCommand,
  migrateCommand,
  configCommand,
  kekCommand,
  auditCommand,
  rootTokenCommand,
  recoverySecretCommand,
  acceptRestoreCommand,
]

/** Verbs that print secrets, which cannot be shown again. */
const shownOnce = ['init', 'root-token', 'recovery-secret', 'component', 'adopt', 'accept-restore']

const longestIntervalMilliseconds = 2 ** 31 - 1

/** Runs the verb that the arguments of this process name, and sets its exit code. */
export async function run(): Promise<void> {
  const program = new Command('strongroom')
    .description('Vault-compatible Transit and PKI over keys that live in a PKCS#11 token')
    .version(product.product_version)
    .showHelpAfterError('(see strongroom help COMMAND)')
    .exitOverride()
  for (const command of commands) program.addCommand(command())
  inherit(program)
  const mustBeRead = process.argv.slice(2).some((word) => shownOnce.includes(word))
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader of a pipe may have read enough; the verb still does its work.
    if ((error.code === 'EPIPE' && !mustBeRead) || process.exitCode) return
    process.exitCode = explainFailure(new Error('the output could not be written', { cause: error }))
  })
  // A verb may wait for the clock alone, or for a thread: neither keeps a process alive.
  const awake = setInterval(() => undefined, longestIntervalMilliseconds)
  try {
    await program.parseAsync(argumentsOf(process.argv.slice(2)), { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) process.exitCode = explainFailure(error)
    else if (error.exitCode !== 0) process.exitCode = exitUsage
  } finally {
    clearInterval(awake)
  }
}

/** `help kek adopt` as `kek help adopt`: commander's own `help` looks at one word alone. */
function argumentsOf(words: readonly string[]): readonly string[] {
  const [first, ...topic] = words
  return first === 'help' && topic.length > 1 ? [...topic.slice(0, -1), 'help', ...topic.slice(-1)] : words
}

/** Copies settings to every subcommand: commander does so only for commands it creates itself. */
function inherit(parent: Command): void {
  for (const command of parent.commands) inherit(command.copyInheritedSettings(parent))
}
