import { Command, InvalidArgumentError } from 'commander'
import { systemTtlSeconds } from '../auth/lifetime.ts'
import { rootTtlSeconds } from '../auth/roottoken.ts'
import { readSeconds } from '../duration.ts'
import type { Custody } from '../keys/custody.ts'
import type { Database } from '../store/database.ts'
import { withCustody } from './custody.ts'
import { type OpenedSettings, withConfig, withForce } from './settings.ts'

interface Options {
  readonly config?: string
  readonly force?: boolean
  readonly ttl: number
  readonly json?: boolean
}

/** `strongroom root-token`: a new root token for the holder of PIN and database. */
export const rootTokenCommand = (): Command =>
  withForce(withConfig(new Command('root-token')))
    .description('make a root token and print it once; revoke it by its accessor')
    .option('--ttl <duration>', 'its lifetime: 90s, 1h30m, 7d; 768h at most', lifetime, rootTtlSeconds)
    .option('--json', 'print JSON')
    .action(async ({ ttl, json = false, ...options }: Options) => {
      await withCustody(options, (custody, database, settings) =>
        printRootToken(settings, { database, custody }, { ttlSeconds: ttl, json }),
      )
    })

/** Makes a root token and prints it. @throws ApiError 500 when no audit device of this machine can be written */
export async function printRootToken(
  settings: OpenedSettings,
  keys: { readonly database: Database; readonly custody: Custody },
  { ttlSeconds = rootTtlSeconds, json = false } = {},
): Promise<void> {
  // Imported here, so that the supervisor, which shares this entry, does not load it.
  const { makeRootToken } = await import('../ceremony/roottoken.ts')
  const { credential, accessor, expiresAt } = await makeRootToken(settings, keys, ttlSeconds)
  const answer = { root_token: credential, accessor, expires_at: expiresAt.toISOString() }
  if (json) console.log(JSON.stringify(answer))
  else for (const [name, value] of Object.entries(answer)) console.log(`${`${name}:`.padEnd(12)} ${value}`)
}

/**
 * As printRootToken, at the end of a command that has voided every other token.
 * @throws Error with what is left to do
 */
export async function printOnlyRootToken(...given: Parameters<typeof printRootToken>): Promise<void> {
  try {
    await printRootToken(...given)
  } catch (cause) {
    throw new Error('all is done but the root token: run strongroom root-token when the reason is gone', { cause })
  }
}

function lifetime(text: string): number {
  const seconds = readSeconds(text, (reason) => {
    throw new InvalidArgumentError(`${reason}.`)
  })
  if (seconds >= 1 && seconds <= systemTtlSeconds) return seconds
  throw new InvalidArgumentError('It must be from 1s to 768h.')
}
