import { readFileSync, statSync } from 'node:fs'
import { inspect } from 'node:util'
import type { Environment } from './environment.ts'
import { ConfigError } from './problems.ts'
import type { Config } from './schema.ts'

export interface SecretValues {
  readonly pin: string
  readonly databasePassword?: string
}

/** The PIN and the database password. Printing, logging or serialising one shows nothing of them. */
export class Secrets {
  readonly #values: SecretValues

  constructor(values: SecretValues) {
    this.#values = { ...values }
  }

  /**
   * The values themselves, to be passed to token, database or a worker. A method and no getters: log scrubbers evaluate
   * getters.
   */
  reveal(): SecretValues {
    return { ...this.#values }
  }

  toJSON(): string {
    return '[secrets]'
  }

  [inspect.custom](): string {
    return '[secrets]'
  }
}

export interface SecretSources {
  readonly environment: Environment
  /** The password that stood in database.url, decoded. */
  readonly urlPassword: string | undefined
  /** False where only the database is used: the PIN is then '' and its source is not touched. */
  readonly pin?: boolean
  /** Asks a person on the terminal, without echo. */
  prompt(question: string): Promise<string>
}

/**
 * Fetches the secrets from where the configuration says they are.
 * @throws ConfigError when a source is missing or empty, or, in strict mode, a file that others on this machine can read
 */
export async function readSecrets(
  config: Config,
  sources: SecretSources,
): Promise<{ secrets: Secrets; warnings: string[] }> {
  const warnings: string[] = []
  const fromFile = (field: string, path: string): string => {
    const { text, open } = readSecretFile(field, path)
    if (open && config.strict) throw new ConfigError([`${field}: ${open}; strict mode refuses that`])
    if (open) warnings.push(`${field}: ${open}`)
    return text
  }
  const pin = sources.pin === false ? '' : await readPin(config, sources, fromFile)
  const { passwordFile } = config.database
  const databasePassword =
    passwordFile === undefined ? sources.urlPassword : fromFile('database.passwordFile', passwordFile)
  return { secrets: new Secrets({ pin, ...(databasePassword === undefined ? {} : { databasePassword }) }), warnings }
}

async function readPin(
  config: Config,
  { environment, prompt }: SecretSources,
  fromFile: (field: string, path: string) => string,
): Promise<string> {
  const { pin: source } = config.pkcs11
  const where = `pkcs11.pin.${Object.keys(source).join('')}`
  let pin: string | undefined
  if (source.file !== undefined) pin = fromFile(where, source.file)
  else if (source.environment !== undefined) pin = environment[source.environment]
  else pin = await prompt('PIN of the token: ')
  if (!pin) throw new ConfigError([`${where}: the PIN is empty or not set`])
  return pin
}

function readSecretFile(field: string, path: string): { text: string; open: string | undefined } {
  try {
    const mode = statSync(path).mode & 0o777
    const open = mode & 0o007 ? `${path} is open to everybody (mode ${mode.toString(8)})` : undefined
    return { text: readFileSync(path, 'utf8').replace(/\r?\n$/, ''), open }
  } catch (error) {
    throw new ConfigError([`${field}: ${(error as Error).message}`])
  }
}
