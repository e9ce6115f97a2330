import { readFileSync, statSync } from 'node:fs'
import { inspect } from 'node:util'
import type { Environment } from './environment.ts'
import type { Config } from './schema.ts'

export interface SecretValues {
  readonly pin: string
  readonly databasePassword?: string
}

/** The PIN and the database password. Printing, logging or serialising it reveals neither. */
export class Secrets {
  readonly #values: SecretValues

  constructor(values: SecretValues) {
    this.#values = { ...values }
  }

  /**
   * The values themselves, to be passed to token, database or a worker. A method, because log scrubbers evaluate
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
  /** The password from database.url, decoded. */
  readonly urlPassword: string | undefined
  /** False if only the database is used: the PIN is then '' and its source is not touched. */
  readonly pin?: boolean
  /** Asks on the terminal, without echo. */
  prompt(question: string): Promise<string>
}

/**
 * Reads the secrets from the sources in the configuration.
 * @returns `problems`: sources that are missing or empty, or, in strict mode, files that others on this machine can
 *   read
 */
export async function readSecrets(
  config: Config,
  sources: SecretSources,
): Promise<{ secrets: Secrets; warnings: string[]; problems: string[] }> {
  const warnings: string[] = []
  const problems: string[] = []
  const fromFile = (field: string, path: string): string | undefined => {
    try {
      const { text, open } = readSecretFile(path)
      if (open && config.strict) problems.push(`${field}: ${open}; strict mode refuses that`)
      else if (open) warnings.push(`${field}: ${open}`)
      return text
    } catch (error) {
      problems.push(`${field}: ${(error as Error).message}`)
      return undefined
    }
  }
  const { passwordFile } = config.database
  const databasePassword =
    passwordFile === undefined ? sources.urlPassword : fromFile('database.passwordFile', passwordFile)
  const pin = sources.pin === false ? '' : await readPin(config, sources, fromFile)
  const empty = pin === '' && sources.pin !== false
  if (empty) problems.push(`pkcs11.pin.${Object.keys(config.pkcs11.pin).join('')}: the PIN is empty or not set`)
  const values = { pin: pin ?? '', ...(databasePassword === undefined ? {} : { databasePassword }) }
  return { secrets: new Secrets(values), warnings, problems }
}

/** Empty when it is not set; undefined when its file cannot be read. */
async function readPin(
  { pkcs11: { pin: source } }: Config,
  { environment, prompt }: SecretSources,
  fromFile: (field: string, path: string) => string | undefined,
): Promise<string | undefined> {
  if (source.file !== undefined) return fromFile('pkcs11.pin.file', source.file)
  if (source.environment !== undefined) return environment[source.environment] ?? ''
  return prompt('PIN of the token: ')
}

function readSecretFile(path: string): { text: string; open: string | undefined } {
  const open = openToEverybody(path)
  return { text: readFileSync(path, 'utf8').replace(/\r?\n$/, ''), open }
}

/** A warning about a file of a secret whose mode lets everybody read or change it. @throws Error if there is none */
export function openToEverybody(path: string): string | undefined {
  const mode = statSync(path).mode & 0o777
  return mode & 0o007 ? `${path} is open to everybody (mode ${mode.toString(8)})` : undefined
}
