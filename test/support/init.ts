import { execFile } from 'node:child_process'
import { join } from 'node:path'

export const main = join(import.meta.dirname, '../../src/main.ts')

/** What `strongroom init` shows. */
export interface Shown {
  readonly rootToken: string
  readonly unsealSecret: string
  /** All that it writes. */
  readonly said: string
}

/** Runs `strongroom init`. @throws Error with its output when it fails */
export function initCluster(configFile: string, environment: Readonly<Record<string, string>> = {}): Promise<Shown> {
  const env = { ...process.env, ...environment }
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [main, 'init', '--config', configFile], { env }, (error, stdout, stderr) => {
      const said = `${stderr}${stdout}`
      const rootToken = environment.STRONGROOM_ROOT_TOKEN ?? /^root_token:\s+(\S+)/m.exec(stdout)?.[1]
      const unsealSecret = /^unseal_secret:\s+(\S+)/m.exec(stdout)?.[1]
      if (error !== null || rootToken === undefined || unsealSecret === undefined) {
        reject(new Error(`init failed\n${said.slice(-4000)}`))
      } else resolve({ rootToken, unsealSecret, said })
    })
  })
}
