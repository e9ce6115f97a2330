import type { Logger } from '../log.ts'
import type { Supervisor } from '../supervisor.ts'
import type { Word } from './upgrade/line.ts'
import type { Predecessor } from './upgrade/predecessor.ts'
import type { Upgrade } from './upgrade/upgrade.ts'

export interface Obedient {
  readonly supervisor: Supervisor
  readonly upgrade: Upgrade
  readonly log: Logger
  /** The process whose signals count for this one too. */
  readonly predecessor?: Predecessor | undefined
  /** Reads the configuration again. */
  reload(): void
}

/**
 * The signals of a supervisor. After an upgrade they are the new program's: this process passes them on, over the
 * channel or the line, so that a signal sent to both (a terminal, systemd) counts once.
 */
export function obeySignals({ supervisor, upgrade, log, predecessor, reload }: Obedient): void {
  const stop = () => {
    upgrade.abandon()
    upgrade.pass('stop')
    supervisor.stop()
  }
  const kill = () => {
    upgrade.pass('kill')
    supervisor.kill()
  }
  const readAgain = () => {
    supervisor.reopen()
    // A new program that starts at this moment may have opened files before they were moved.
    void upgrade.settled.then(() => upgrade.pass('reload') || reload())
  }
  const start = () => {
    if (!upgrade.pass('upgrade')) void upgrade.start()
  }
  const obey = (word: Word) => {
    if (word === 'stop') stop()
    else if (word === 'kill') kill()
    else if (word === 'reload') readAgain()
    else start()
  }
  const part = (from: Predecessor) => {
    if (from.drained) return
    from.drained = true
    supervisor.leave(from.peer)
    log.info('the program before this one is drained')
    from.line.listen(obey, stop)
  }
  // Signals passed on do not count: a terminal sends its signal to both programs of an upgrade.
  let times = 0
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => (++times > 1 ? kill() : stop()))
  process.on('SIGHUP', readAgain)
  process.on('SIGUSR2', start)
  if (predecessor) {
    predecessor.onMessage = (message) => {
      if (message.type === 'drained') part(predecessor)
      else if (message.type === 'seal' || message.type === 'sealed') supervisor.hearPeer(message)
      else obey(message.type)
    }
  }
  const lose = () => {
    if (predecessor === undefined) stop()
    else if (supervisor.started) part(predecessor)
    else kill()
  }
  // A parent that started us with an IPC channel watches us through it, and we end with it; a predecessor may go when
  // we serve.
  if (process.connected) process.on('disconnect', lose)
  else if (predecessor) kill()
}
