import { Command } from 'commander'
import { withCustody } from './custody.ts'
import { withConfig, withForce } from './settings.ts'

interface Options {
  readonly config?: string
  readonly force?: boolean
  readonly remove?: boolean
}

/** `strongroom recovery-secret`: the secret that allows sys/generate-root to make root tokens. */
export const recoverySecretCommand = (): Command =>
  withForce(withConfig(new Command('recovery-secret')))
    .description('make the secret needed for sys/generate-root (`vault operator generate-root`), and print it once')
    .option('--remove', 'switch sys/generate-root off, as it is initially')
    .action(async ({ remove, ...options }: Options) => {
      // Imported here, so that the supervisor, which shares this entry, does not load it.
      const { makeRecoverySecret, removeRecoverySecret } = await import('../ceremony/roottoken.ts')
      await withCustody(options, async (custody, database, settings) => {
        if (remove) await removeRecoverySecret(settings, { database, custody })
        else console.log(`recovery_secret: ${await makeRecoverySecret(settings, { database, custody })}`)
      })
    })
