import { Command } from 'commander'
import { stringify } from 'yaml'
import { requireListenerTls } from '../config/listenertls.ts'
import { strictHelper } from '../hsm/strict/helper.ts'
import { readSettings, withConfig } from './settings.ts'

/** `strongroom config check`: every check that needs neither token nor database. */
export const configCommand = (): Command =>
  new Command('config').description('look at a configuration').addCommand(
    withConfig(new Command('check'))
      .description('check file, environment, secret files and TLS files; exit code 2 when something is wrong')
      .option('--show', 'print the whole effective configuration, without secrets')
      .action(async (options: { config?: string; show?: boolean }) => {
        const { config, warnings } = await readSettings(
          options.config,
          { ...process.env },
          { prompt: async () => 'not asked for', files: true },
        )
        requireListenerTls(config)
        if (config.strict) strictHelper()
        for (const warning of warnings) console.error(`warning: ${warning}`)
        console.log(options.show ? stringify(config).trimEnd() : 'the configuration is good')
      }),
  )
