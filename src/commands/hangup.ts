import { fingerprint } from '../config/fingerprint.ts'
import { requireListenerTls } from '../config/listenertls.ts'
import type { Loaded } from '../config.ts'
import { strictHelper } from '../hsm/strict/helper.ts'
import type { Logger } from '../log.ts'
import { requireSockets } from '../supervisor/activation.ts'
import { tryPin } from '../supervisor/pin.ts'
import type { Ports } from '../supervisor/ports.ts'
import type { SealState } from '../supervisor/state.ts'
import type { Supervisor } from '../supervisor.ts'

export interface ReloadOptions {
  readonly supervisor: Supervisor
  /** The fingerprint of the configuration that the workers have. */
  readonly fingerprint: string
  readonly sealState: SealState
  readonly ports: Ports
  readonly log: Logger
  /** Reads the configuration. */
  read(): Promise<Loaded>
}

/**
 * Makes the function that rereads the configuration after SIGHUP. The workers are replaced if the configuration, a
 * secret, or a certificate or key that it names has changed; a configuration that cannot be read, or certificates that do
 * not fit, change nothing.
 */
export function createReload({ supervisor, sealState, ports, log, read, ...initial }: ReloadOptions): () => void {
  let current = initial.fingerprint
  const reload = async (): Promise<void> => {
    try {
      const { secrets, warnings, ...next } = await read()
      const config = await ports.assign(next.config)
      const found = fingerprint(config, secrets)
      // After a refused PIN the operator may have corrected the token.
      if (found === current && !supervisor.pinRefused) {
        log.info('configuration read again: it has not changed')
        return
      }
      for (const warning of warnings) log.warn(warning)
      requireListenerTls(config)
      if (config.strict) strictHelper()
      if (!sealState.sealed) await tryPin({ config, secrets, force: false })
      requireSockets(config, supervisor.sockets)
      log.info('configuration read again')
      supervisor.replace(config, secrets)
      current = found
    } catch (error) {
      log.error({ err: error }, 'the new configuration was rejected; the old one stays in force')
    }
  }
  // One after the other, so that a wrong PIN is tried only once.
  let last = Promise.resolve()
  return () => {
    last = last.then(reload)
  }
}
