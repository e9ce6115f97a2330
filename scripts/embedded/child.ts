import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

const setpriv = '/usr/bin/setpriv'

/**
 * Spawns a process that the kernel sends SIGTERM when this one ends, by whatever death (prctl(2) PR_SET_PDEATHSIG).
 * It gets a process group of its own, so that Ctrl-C in a terminal reaches only us and we choose the order of the end.
 */
export function spawnBound(command: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const bound = existsSync(setpriv)
  const line = bound ? ['--pdeathsig', 'TERM', command, ...args] : [...args]
  return spawn(bound ? setpriv : command, line, { detached: true, ...options })
}

/** How a process ended, for a log line. */
export const ending = (child: ChildProcess): string =>
  child.signalCode === null ? `ended with exit code ${child.exitCode}` : `was killed by ${child.signalCode}`

/** Whether the process is gone. */
export const gone = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

/** Resolves when the process is gone; rejects when it could not be started at all. */
export function ended(child: ChildProcess): Promise<void> {
  if (gone(child)) return Promise.resolve()
  return new Promise((resolve, reject) => child.once('exit', () => resolve()).once('error', reject))
}

/** SIGTERM, then SIGKILL when the process is still there after `seconds`. */
export async function stop(child: ChildProcess, seconds: number): Promise<void> {
  if (gone(child)) return
  child.kill('SIGTERM')
  const patience = new AbortController()
  const killed = delay(seconds * 1000, undefined, { signal: patience.signal }).then(
    () => child.kill('SIGKILL'),
    () => false,
  )
  await ended(child)
  patience.abort()
  await killed
}
