import { Command, CommanderError } from 'commander'
import { acceptRestoreCommand } from './commands/acceptrestore.ts'
import { auditCommand } from './commands/audit.ts'
import { configCommand } from './commands/config.ts'
import { exitUsage, explainFailure } from './commands/failure.ts'
import { initCommand } from './commands/init.ts'
import { kekCommand } from './commands/kek.ts'
import { migrateCommand } from './commands/migrate.ts'
import { recoverySecretCommand } from './commands/recoverysecret.ts'
import { rootTokenCommand } from './commands/roottoken.ts'
import { serverCommand } from './commands/server.ts'
import { statusCommand } from './commands/status.ts'

const program = new Command('strongroom')
  .description('Vault-compatible Transit and PKI over keys that live in a PKCS#11 token')
  .version('0.1.0')
  .showHelpAfterError('(strongroom help COMMAND says more)')
  .exitOverride()
for (const command of [
  serverCommand,
  initCommand,
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

try {
  await program.parseAsync()
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : exitUsage
  else process.exitCode = explainFailure(error)
}

/** Copies settings to every subcommand: commander does so only for commands it creates itself. */
function inherit(parent: Command): void {
  for (const command of parent.commands) inherit(command.copyInheritedSettings(parent))
}
