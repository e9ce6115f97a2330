import { Command, CommanderError } from 'commander'
import { acceptRestoreCommand } from './commands/acceptrestore.ts'
import { auditCommand } from './commands/audit.ts'
import { configCommand } from './commands/config.ts'
import { exitUsage, explainFailure } from './commands/failure.ts'
import { initCommand } from './commands/init.ts'
import { kekCommand } from './commands/kek.ts'
import { migrateCommand } from './commands/migrate.ts'
import { recoverySecretCommand } from './commands/recoverysecret.ts'
import { reloadCommand } from './commands/reload.ts'
import { rootTokenCommand } from './commands/roottoken.ts'
import { serverCommand } from './commands/server.ts'
import { statusCommand } from './commands/status.ts'

const program = new Command('strongroom')
  .description('Vault-compatible Transit and PKI over keys that live in a PKCS#11 token')
  .version('0.1.0')
  .showHelpAfterError('(see strongroom help COMMAND)')
  .exitOverride()
for (const command of [
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
]) {
  program.addCommand(command())
}
inherit(program)

/** Verbs that print secrets, which cannot be shown again. */
const shownOnce = ['init', 'root-token', 'recovery-secret', 'component', 'adopt', 'accept-restore']
const mustBeRead = process.argv.slice(2).some((word) => shownOnce.includes(word))

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe may have read enough; the verb still does its work.
  if ((error.code === 'EPIPE' && !mustBeRead) || process.exitCode) return
  process.exitCode = explainFailure(new Error('the output could not be written', { cause: error }))
})

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) process.exitCode = explainFailure(error)
  else if (error.exitCode !== 0) process.exitCode = exitUsage
}

/** Copies settings to every subcommand: commander does so only for commands it creates itself. */
function inherit(parent: Command): void {
  for (const command of parent.commands) inherit(command.copyInheritedSettings(parent))
}
