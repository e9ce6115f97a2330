import { Command } from 'commander'
import { withCustody } from './custody.ts'
import { withConfig, withForce } from './settings.ts'

/** `strongroom accept-restore`: accepts a restored database, once. */
export const acceptRestoreCommand = (): Command =>
  withForce(withConfig(new Command('accept-restore')))
    .description("accept a database that is older than the token's record of it; tokens issued before are void")
    .action(async (options: { config?: string; force?: boolean }) => {
      await withCustody({ ...options, acceptRestore: true }, async (custody) => {
        console.log(`epoch ${custody.cluster.epoch}: this database is accepted`)
      })
    })
