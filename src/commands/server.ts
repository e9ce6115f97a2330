import { Command } from 'commander'
import { systemClock } from '../clock.ts'
import { createLog } from '../log.ts'
import { tryPin } from '../supervisor/pin.ts'
import { Ports } from '../supervisor/ports.ts'
import { removeDeadSockets } from '../supervisor/sockets.ts'
import { openSealState } from '../supervisor/state.ts'
import { Supervisor } from '../supervisor.ts'
import { askSecret } from './prompt.ts'
import { readSettings, withConfig, withForce } from './settings.ts'
import { makeStateDirectory } from './statedirectory.ts'

interface Options {
  readonly config?: string
  readonly force?: boolean
}

/** `strongroom server`: the supervisor of this node. */
export const serverCommand = (): Command =>
  withForce(withConfig(new Command('server')))
    .description('serve; prints "ready ADDRESS" when every listener does, logs on standard error')
    .addHelpText('after', '\nSIGTERM, SIGINT: drain and end; again: end at once. SIGHUP: read the configuration again.')
    .action(serve)

/** Ends the process when every process of the node has ended. */
async function serve({ config: file, force = false }: Options): Promise<void> {
  // Both for SIGHUP, when the secrets are long gone from process.env and no operator is at the terminal.
  const environment = { ...process.env }
  let answer: Promise<string> | undefined
  const prompt = (question: string) => (answer ??= askSecret(question))
  const first = await readSettings(file, environment, { prompt })
  const log = createLog(first.config.log.level, { process: 'supervisor' })
  for (const warning of first.warnings) log.warn(warning)
  makeStateDirectory(first.config.stateDirectory)
  const sealState = openSealState(first.config.stateDirectory)
  if (!sealState.sealed) await tryPin({ ...first, force })
  await removeDeadSockets(first.config.listeners.map(({ address }) => address))
  const ports = new Ports()

  const supervisor = new Supervisor({
    config: await ports.assign(first.config),
    secrets: first.secrets,
    log,
    clock: systemClock,
    sealState,
    onReady: (addresses) => console.log(`ready ${addresses.join(' ')}`),
  })
  const reload = async () => {
    try {
      const next = await readSettings(file, environment, { prompt })
      for (const warning of next.warnings) log.warn(warning)
      if (!sealState.sealed) await tryPin({ ...next, force: false })
      log.info('configuration read again')
      supervisor.replace(await ports.assign(next.config), next.secrets)
    } catch (error) {
      log.error({ err: error }, 'the configuration was not taken over; the old one goes on')
    }
  }
  let stopping = false
  const stop = () => {
    if (stopping) supervisor.kill()
    else supervisor.stop()
    stopping = true
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  process.on('SIGHUP', () => void reload())
  // A parent that started us with an IPC channel watches us through it, and we end with it.
  if (process.connected) process.on('disconnect', () => supervisor.stop())
  // Explicit, because Node keeps a listening socket whose last worker was killed under connections, and with it the loop.
  process.exit(await supervisor.ended)
}
