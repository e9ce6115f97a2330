import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from '../log.ts'
import { startTicks } from '../supervisor/record.ts'
import { alone } from '../turns/alone.ts'
import { makeMarker, markerIn } from '../turns/marker.ts'

/**
 * Makes this process the only supervisor with its state directory, until it ends: two would take each other's seal
 * marker and record. Where no marker can be made it serves without that, which is logged.
 * @throws Error while another process has it
 */
export function lockDirectory(stateDirectory: string, log: Logger): void {
  const path = join(stateDirectory, 'supervisor.lock')
  const own = `${process.pid}:${startTicks(process.pid) ?? ''}`
  let other: number | undefined
  try {
    other = alone(stateDirectory, 'supervisor.taking', () => take(path, own))
  } catch (error) {
    log.error({ err: error }, 'the state directory cannot be locked: a second server in it would not be noticed')
    return
  }
  if (other !== undefined)
    throw new Error(`the server with process id ${other} runs with the state directory ${stateDirectory} already`)
  process.once('exit', () => markerIn(path) === own && rmSync(path))
}

/**
 * Takes the lock, a marker that names the process, unless a living process has it. Only one process at a time may do
 * this: of two that judge a lock dead, the second would take away the first one's.
 * @returns the living process that has it, if there is one
 */
function take(path: string, own: string): number | undefined {
  const holder = livingHolder(path)
  if (holder !== undefined) return holder
  const draft = `${path}.${process.pid}.new`
  rmSync(draft, { force: true })
  makeMarker(draft, own)
  try {
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
  return undefined
}

/** The process that a lock names, if it lives. */
function livingHolder(path: string): number | undefined {
  const [pid, ticks] = markerIn(path)?.split(':') ?? []
  return ticks !== undefined && startTicks(Number(pid)) === ticks ? Number(pid) : undefined
}
