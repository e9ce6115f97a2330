import { fileURLToPath } from 'node:url'
import { Command, Option } from 'commander'
import { systemClock } from '../clock.ts'
import { fingerprint } from '../config/fingerprint.ts'
import { requireListenerTls } from '../config/listenertls.ts'
import { auditDirectory } from '../config/places.ts'
import type { Config } from '../config.ts'
import { strictHelper } from '../hsm/strict/helper.ts'
import { createLog } from '../log.ts'
import { activatedSockets, closeUnwanted, forgetActivation, requireSockets } from '../supervisor/activation.ts'
import { Output } from '../supervisor/output.ts'
import { tryPin } from '../supervisor/pin.ts'
import { Ports } from '../supervisor/ports.ts'
import { recordStart, recordStep, recordUpgrade } from '../supervisor/record.ts'
import { obeySignals } from '../supervisor/signals.ts'
import { removeDeadSockets } from '../supervisor/sockets.ts'
import { openSealState } from '../supervisor/state.ts'
import type { Handover } from '../supervisor/upgrade/handover.ts'
import { Predecessor } from '../supervisor/upgrade/predecessor.ts'
import { installedNode, installedProgram } from '../supervisor/upgrade/program.ts'
import { Upgrade } from '../supervisor/upgrade/upgrade.ts'
import { Supervisor } from '../supervisor.ts'
import { lockDirectory } from './directorylock.ts'
import { createReload } from './hangup.ts'
import { askSecret } from './prompt.ts'
import { readSettings, withConfig, withForce } from './settings.ts'
import { makeStateDirectory } from './statedirectory.ts'

interface Options {
  readonly config?: string
  readonly force?: boolean
  readonly successor?: boolean
}

/** The program of this process. */
const own = fileURLToPath(new URL('../main.ts', import.meta.url))

/** The longest wait for a further worker of an upgrade's new program to serve. */
const upgradeMilliseconds = 120_000

/** `strongroom server`: the supervisor of this node. */
export const serverCommand = (): Command =>
  withForce(withConfig(new Command('server')))
    .addOption(new Option('--successor').hideHelp())
    .description('serve; prints "ready ADDRESS" when every listener does, logs on standard error')
    .addHelpText(
      'after',
      '\nSIGTERM, SIGINT: drain and end; again: end at once. SIGHUP: open audit files anew, and take over a changed configuration. SIGUSR2: start the new program in its place.',
    )
    .action(serve)

/** Ends the process when every process of the node has ended. */
async function serve({ config: file, force = false, successor = false }: Options): Promise<void> {
  // Neither log rotation nor a request for an upgrade must end a server that is just starting.
  for (const signal of ['SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => undefined)
  const predecessor = successor ? new Predecessor() : undefined
  try {
    await run({ file, force, predecessor, handover: await predecessor?.handover })
  } catch (error) {
    predecessor?.refuse((error as Error).message)
    throw error
  }
}

interface Start {
  readonly file: string | undefined
  readonly force: boolean
  readonly predecessor: Predecessor | undefined
  readonly handover: Handover | undefined
}

async function run({ file, force, predecessor, handover }: Start): Promise<void> {
  // Both for SIGHUP and an upgrade, when the secrets are long gone from process.env and no operator is at the terminal.
  const environment = handover?.environment ?? handedOn(process.env)
  let pin = handover?.pin ?? null
  const prompt = async (question: string) => {
    pin ??= await askSecret(question)
    return pin
  }
  const first = await readSettings(file, environment, { prompt })
  const { config } = first
  requireListenerTls(config)
  const log = createLog(config.log.level, { process: 'supervisor' })
  for (const warning of first.warnings) log.warn(warning)
  makeStateDirectory(config.stateDirectory)
  // A successor's predecessor has it, and lives as long.
  if (predecessor === undefined) lockDirectory(config.stateDirectory, log)
  if (config.audit.directory === undefined) makeStateDirectory(auditDirectory(config))
  const sealState = openSealState(config.stateDirectory, predecessor)
  if (config.strict) strictHelper()
  if (!sealState.sealed) await tryPin({ ...first, force })
  const ports = new Ports(handover?.ports)
  const assigned = await ports.assign(config)
  // Of the files that the workers will read: one that changes meanwhile costs a needless replacement at most.
  const started = fingerprint(assigned, first.secrets)
  const inherited = inheritedSockets(assigned, environment, handover)
  await removeDeadSockets(config.listeners.map(({ address }) => address).filter((address) => !inherited.has(address)))

  const output = new Output()
  const supervisor = new Supervisor({
    ...{ config: assigned, secrets: first.secrets, log, clock: systemClock, sealState, inherited, output },
    ...(predecessor ? { peer: predecessor.peer } : {}),
    onFailure: (reason) => predecessor?.post({ type: 'failed', reason }),
    onProgress: () => predecessor?.post({ type: 'progress' }),
    onReady(addresses) {
      output.write(`ready ${addresses.join(' ')}\n`)
      if (predecessor) predecessor.post({ type: 'ready' })
      else recordStart(config.stateDirectory, log)
    },
  })
  const command = () => {
    const [path = ''] = process.argv.slice(1)
    const program = installedProgram(path)
    const node = installedNode(program, own)
    log.info({ program, node }, 'the program of the upgrade')
    return [node, path, 'server', ...(file === undefined ? [] : ['--config', file]), '--successor']
  }
  const upgrade = new Upgrade({
    ...{ supervisor, predecessor, log, deadlineMilliseconds: upgradeMilliseconds, command },
    handover: () => ({ ports: ports.chosen, environment, pin, sealed: sealState.sealed }),
    onProgress: () => recordStep(config.stateDirectory, log),
    onOutcome: (failure) => recordUpgrade(config.stateDirectory, failure, log),
  })
  const reload = createReload({
    ...{ supervisor, sealState, ports, log, fingerprint: started },
    read: () => readSettings(file, environment, { prompt }),
  })
  obeySignals({ supervisor, upgrade, log, reload, predecessor })
  // Explicit, because an open channel keeps the loop alive.
  process.exit(await upgrade.finish(await supervisor.ended))
}

/** The listening sockets of the server from which this one takes over, or those that systemd has opened. */
function inheritedSockets(config: Config, environment: NodeJS.ProcessEnv, handover: Handover | undefined) {
  if (handover === undefined) {
    forgetActivation(process.env)
    return activatedSockets(config, environment, process.pid)
  }
  const sockets = new Map(handover.sockets)
  closeUnwanted(config, sockets)
  requireSockets(config, sockets)
  return sockets
}

/** The variables that the configuration may read: all, because it may name any for the PIN. */
const handedOn = (environment: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
