import { Command } from 'commander'
import { withCustody } from './custody.ts'
import { printOnlyRootToken } from './roottoken.ts'
import { withConfig, withForce } from './settings.ts'

interface Options {
  readonly config?: string
  readonly force?: boolean
  readonly newEpoch?: boolean
}

/** `strongroom accept-restore`: accepts a restored database, once. */
export const acceptRestoreCommand = (): Command =>
  withForce(withConfig(new Command('accept-restore')))
    .description(
      "accept a database that is older than the token's record of it: tokens issued before are void, a root token is printed",
    )
    .option('--new-epoch', 'begin a new epoch even if the database is not older, which voids every token')
    .addHelpText(
      'after',
      '\nStop every node before, or restart it afterwards: a running node keeps accepting the tokens it knows.',
    )
    .action(acceptRestore)

async function acceptRestore({ newEpoch: beginEpoch = false, ...options }: Options): Promise<void> {
  await withCustody({ ...options, acceptRestore: true, beginEpoch }, async (custody, database, settings) => {
    const { epoch, begun } = custody.cluster
    if (!begun) {
      console.log(
        `epoch ${epoch} continues: the database is not behind the token (--new-epoch begins a new one nevertheless, strongroom root-token makes a root token)`,
      )
      return
    }
    console.log(`epoch ${epoch}: this database is accepted, and tokens issued before are void`)
    const workers = (await database.incarnations()).length
    if (workers > 0)
      console.error(`workers registered: ${workers}. Restart every running node: until then it accepts the old tokens`)
    await printOnlyRootToken(settings, { database, custody })
  })
}
