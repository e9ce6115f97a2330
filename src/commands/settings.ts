import { type Command, Option } from 'commander'
import { systemClock } from '../clock.ts'
import type { Environment } from '../config/environment.ts'
import { type Config, type Loaded, loadConfig, type Secrets, type Sources } from '../config.ts'
import { strictHelper } from '../hsm/strict/helper.ts'
import { createLog, type Logger } from '../log.ts'
import { tryPin } from '../supervisor/pin.ts'
import { askSecret } from './prompt.ts'
import { makeStateDirectory } from './statedirectory.ts'

/** Adds `--config`. */
export const withConfig = (command: Command): Command =>
  command.addOption(
    new Option('-c, --config <file>', 'YAML or JSON file; STRONGROOM_* variables override it').env('STRONGROOM_CONFIG'),
  )

/** Adds `--force`, for every verb that logs in to the token. */
export const withForce = (command: Command): Command =>
  command.option('--force', 'log in even with a PIN that the token refused before, or with only one try left')

/**
 * Reads configuration and secrets, and removes every STRONGROOM_* variable (and the one with the PIN) from this
 * process's environment, so that no child inherits a secret.
 * @param environment an earlier copy of process.env
 * @throws ConfigError
 */
export async function readSettings(
  file: string | undefined,
  environment: Environment,
  sources: Partial<Sources> = {},
): Promise<Loaded> {
  const loaded = await loadConfig({ file, environment, prompt: askSecret, ...sources })
  for (const name of Object.keys(process.env)) {
    if (name.startsWith('STRONGROOM_') || name === loaded.config.pkcs11.pin.environment) delete process.env[name]
  }
  return loaded
}

/** The needs of a verb that works on token and database. */
export interface OpenedSettings {
  readonly config: Config
  readonly secrets: Secrets
  readonly log: Logger
  readonly clock: typeof systemClock
}

/** Reads the settings of such a verb, and tries the PIN. @throws ConfigError; Error when the token refuses the PIN */
export async function openSettings(options: { config?: string; force?: boolean }): Promise<OpenedSettings> {
  const { config, secrets, warnings } = await readSettings(options.config, { ...process.env })
  const log = createLog(config.log.level)
  for (const warning of warnings) log.warn(warning)
  makeStateDirectory(config.stateDirectory)
  if (config.strict) strictHelper()
  await tryPin({ config, secrets, force: options.force ?? false })
  Object.assign(process.env, config.pkcs11.environment)
  return { config, secrets, log, clock: systemClock }
}
