import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from '../log.ts'
import { startTicks } from '../supervisor/record.ts'

/**
 * Makes this process the only supervisor with its state directory, until it ends: two would take each other's seal
 * marker and record. On a full disk, or without hard links, it serves without that, which is logged.
 * @throws Error while another process has it
 */
export function lockDirectory(stateDirectory: string, log: Logger): void {
  const path = join(stateDirectory, 'supervisor.lock')
  const own = `${process.pid}:${startTicks(process.pid) ?? ''}`
  let other: number | undefined
  try {
    other = take(path, own)
  } catch (error) {
    log.error({ err: error }, 'the state directory cannot be locked: a second server in it would not be noticed')
    return
  }
  if (other !== undefined)
    throw new Error(`the server with process id ${other} runs with the state directory ${stateDirectory} already`)
  process.once('exit', () => holderIn(path) === own && rmSync(path))
}

/**
 * Takes the lock: a file that names the process, and appears whole in one step (link(2)) or not at all. One whose
 * process has died is put aside.
 * @returns the living process that has it, if there is one
 */
function take(path: string, own: string): number | undefined {
  const draft = `${path}.${process.pid}.new`
  try {
    writeFileSync(draft, own, { mode: 0o600 })
    while (!linked(draft, path)) {
      const holder = livingHolder(path)
      if (holder !== undefined) return holder
      putAside(path)
    }
    return undefined
  } finally {
    rmSync(draft, { force: true })
  }
}

/** False when there is a lock. */
function linked(file: string, path: string): boolean {
  try {
    linkSync(file, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function holderIn(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The process that a lock names, if it lives. */
function livingHolder(path: string): number | undefined {
  const [pid, ticks] = holderIn(path)?.split(':') ?? []
  return ticks !== undefined && startTicks(Number(pid)) === ticks ? Number(pid) : undefined
}

/** Another process may have put it aside meanwhile, and taken the lock: that one is put back. */
function putAside(path: string): void {
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  if (livingHolder(aside) !== undefined) linked(aside, path)
  rmSync(aside)
}
