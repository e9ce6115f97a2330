import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { Command } from 'commander'
import { stringify } from 'yaml'
import { ConfigError } from '../config/problems.ts'
import type { Config } from '../config.ts'
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
        const problems = tlsProblems(config)
        if (problems.length > 0) throw new ConfigError(problems)
        if (config.strict) strictHelper()
        for (const warning of warnings) console.error(`warning: ${warning}`)
        console.log(options.show ? stringify(config).trimEnd() : 'the configuration is good')
      }),
  )

/** Faults of certificates: unreadable, or not belonging to their keys. */
function tlsProblems({ listeners }: Config): string[] {
  return listeners.flatMap(({ tls }, index) => {
    if (!tls) return []
    try {
      createSecureContext({
        cert: readFileSync(tls.certificate),
        key: readFileSync(tls.key),
        ...(tls.clientCa === undefined ? {} : { ca: readFileSync(tls.clientCa) }),
      })
      return []
    } catch (error) {
      return [`listeners.${index}.tls: ${(error as Error).message}`]
    }
  })
}
