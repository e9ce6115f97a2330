import { Command } from 'commander'
import { systemClock } from '../clock.ts'
import { createLog } from '../log.ts'
import { readSettings, withConfig } from './settings.ts'

/** `strongroom migrate`: brings the schema up to this version. */
export const migrateCommand = (): Command =>
  withConfig(new Command('migrate'))
    .description(
      'bring the database schema up to this version; docs/upgrade.md says if older nodes may serve meanwhile',
    )
    .option('--status', 'only show the state of the schema')
    .action(async (options: { config?: string; status?: boolean }) => {
      const settings = await readSettings(options.config, { ...process.env }, { pin: false })
      const { openDatabase } = await import('../open.ts')
      const log = createLog(settings.config.log.level)
      await using database = await openDatabase({ ...settings, log, clock: systemClock })
      if (!options.status) await database.migrate()
      const { state, version, minReader, known } = await database.schemaStatus()
      console.log(`schema ${version} (${state}); this program knows ${known}, the schema needs ${minReader} or newer`)
    })
