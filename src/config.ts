import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { Settings } from 'typebox/system'
import { Check, Default, Errors } from 'typebox/value'
import { Addresses } from './config/addresses.ts'
import { type Environment, override } from './config/environment.ts'
import { explain } from './config/explain.ts'
import { missingFiles } from './config/files.ts'
import type { Node } from './config/node.ts'
import { ConfigError } from './config/problems.ts'
import { parseText, typed } from './config/read.ts'
import { type Config, schema } from './config/schema.ts'
import { readSecrets, type SecretSources, type Secrets } from './config/secrets.ts'
import { hostsOf, isDatabaseUrl, passwordsOf, withPassword } from './config/url.ts'
import { isObject } from './field/object.ts'
import { freeze } from './freeze.ts'

export type { Config, Secrets }

export interface Loaded {
  readonly config: Config
  readonly secrets: Secrets
  /** Allowed but unwise settings, one line each. */
  readonly warnings: readonly string[]
}

export interface Sources extends Omit<SecretSources, 'urlPassword'> {
  /** Path of a YAML or JSON file; undefined uses the environment alone. */
  readonly file: string | undefined
  /** Whether to check every other file named in the configuration too. */
  readonly files?: boolean
}

/**
 * The configuration and, separately, the secrets it refers to.
 * @throws ConfigError naming every wrong field and its allowed values, or else every missing file
 */
export async function loadConfig(sources: Sources): Promise<Loaded> {
  const parsed = parseConfig(readText(sources.file), sources.environment)
  const fetched = await readSecrets(parsed.config, { ...sources, urlPassword: parsed.urlPassword })
  const problems = [...fetched.problems, ...(sources.files ? missingFiles(parsed.config) : [])]
  if (problems.length > 0) throw new ConfigError(problems)
  return { config: parsed.config, secrets: fetched.secrets, warnings: [...parsed.warnings, ...fetched.warnings] }
}

/**
 * Makes a frozen configuration from file text and environment; touches nothing else.
 * @throws ConfigError
 */
export function parseConfig(
  text: string,
  environment: Environment,
): { config: Config; urlPassword: string | undefined; warnings: string[] } {
  const file = parseFile(text)
  const { tree, warnings } = override(schema as Node, file, environment)
  const value = Default(schema, typed(schema as Node, tree))
  if (!Check(schema, value)) throw new ConfigError(explain(schema as Node, value, everyError(value)))
  const problems = contradictions(value)
  if (problems.length > 0) throw new ConfigError(problems)
  const [urlPassword] = passwordsOf(value.database.url)
  const config = freeze({ ...value, database: { ...value.database, url: withPassword(value.database.url, '') } })
  return { config, urlPassword, warnings: [...warnings, ...exposed(config)] }
}

function readText(file: string | undefined): string {
  if (file === undefined) return ''
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([`the configuration cannot be read: ${(error as Error).message}`])
  }
}

function parseFile(text: string) {
  let tree: unknown
  try {
    tree = parseText(text)
  } catch (error) {
    throw new ConfigError([`the configuration is not YAML: ${(error as Error).message.split('\n')[0]}`])
  }
  if (!isObject(tree)) throw new ConfigError(['the configuration must be a map of sections'])
  return tree
}

/** All errors: typebox stops at the eighth to bound the cost of hostile input, but an operator should see them all. */
function everyError(value: unknown) {
  const { maxErrors } = Settings.Get()
  Settings.Set({ maxErrors: 1000 })
  try {
    return Errors(schema, value)
  } finally {
    Settings.Set({ maxErrors })
  }
}

/** Problems that involve several fields. */
function contradictions(config: Config): string[] {
  const problems: string[] = []
  config.listeners.forEach((listener, index) => {
    const { address } = listener
    const at = `listeners.${index}.address: ${address}`
    if (Number(/:(\d+)$/.exec(address)?.[1] ?? 0) > 65535) problems.push(`${at} is not allowed; a port is 0 to 65535`)
    problems.push(...proxyProblems(listener, `listeners.${index}`))
    if (config.listeners.findIndex((other) => other.address === address) < index) problems.push(`${at} occurs twice`)
  })
  const { url, passwordFile } = config.database
  const passwords = isDatabaseUrl(url) ? passwordsOf(url) : undefined
  if (passwords === undefined) problems.push('database.url: the value (not shown) is not a URL')
  else if (passwords.length > 1) problems.push('database.url: every node must have the same password')
  else if (passwords.length > 0 && passwordFile !== undefined) {
    problems.push('database.passwordFile: database.url already contains a password; give only one of the two')
  }
  config.pkcs11Libraries.forEach(({ name }, index) => {
    const same = (other: { name: string }) => other.name.toLowerCase() === name.toLowerCase()
    if (config.pkcs11Libraries.findIndex(same) < index)
      problems.push(`pkcs11Libraries.${index}.name: ${name} occurs twice`)
  })
  const { tls } = config.database
  if (tls && (tls.certificate === undefined) !== (tls.key === undefined)) {
    problems.push('database.tls: certificate and key must be given together')
  }
  // The driver (mysql2 3.x) would check the certificate of an address against the name localhost.
  const bare = tls && isDatabaseUrl(url) ? hostsOf(url).filter((host) => isIP(host) !== 0) : []
  for (const host of bare) {
    problems.push(`database.url: with database.tls ${host} must be a host name that the server's certificate contains`)
  }
  return problems
}

function proxyProblems({ forwardedFor, proxyProtocol }: Config['listeners'][number], at: string): string[] {
  if (forwardedFor && proxyProtocol)
    return [`${at}: forwardedFor and proxyProtocol both supply the address of the client; set only one of them`]
  try {
    new Addresses([...(forwardedFor?.addresses ?? []), ...(proxyProtocol?.addresses ?? [])])
    return []
  } catch (error) {
    return [`${at}: ${(error as Error).message}`]
  }
}

/** Warnings of connections that others on the network could read. */
function exposed({ listeners, database }: Config): string[] {
  const hosts = database.tls ? [] : hostsOf(database.url).filter((host) => !/^(127\.|localhost$|::1$)/.test(host))
  return [
    ...listeners.flatMap(({ address, tls }, index) =>
      tls || /^(unix:|127\.|localhost:|\[::1\]:)/.test(address)
        ? []
        : [`listeners.${index}: ${address} is reachable from other machines without TLS`],
    ),
    ...hosts.map(
      (host) =>
        `database.url: the connection to ${host} has no TLS (database.tls): others on the network can read and change it`,
    ),
  ]
}
