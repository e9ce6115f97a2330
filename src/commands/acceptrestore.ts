import { Command } from 'commander'
import { withCustody } from './custody.ts'
import { withConfig, withForce } from './settings.ts'

/** `strongroom accept-restore`: takes a restored database for the truth, once. */
export const acceptRestoreCommand = (): Command =>
  withForce(withConfig(new Command('accept-restore')))
    .description('take a database that is behind what the token remembers for the truth; tokens issued before are void')
    .action(async (options: { config?: string; force?: boolean }) => {
      await withCustody({ ...options, acceptRestore: true }, async (custody) => {
        console.log(`epoch ${custody.cluster.epoch}: this database is the one that counts now`)
      })
    })
