import { readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { startTicks } from '../supervisor/record.ts'

const gone = new Set(['ENOENT', 'EINVAL'])

/**
 * Makes this process the only supervisor with its state directory, until it ends: two would take each other's seal
 * marker and record. The lock is a symbolic link that names the process: it is made, with its content, in one step or not
 * at all, and one whose process has died is put aside.
 * @throws Error while another process has it
 */
export function lockDirectory(stateDirectory: string): void {
  const path = join(stateDirectory, 'supervisor.lock')
  const own = `${process.pid}:${startTicks(process.pid) ?? ''}`
  while (!made(path, own)) {
    const pid = livingHolder(path)
    if (pid !== undefined)
      throw new Error(`the server with process id ${pid} runs with the state directory ${stateDirectory} already`)
    putAside(path)
  }
  process.once('exit', () => holderIn(path) === own && rmSync(path))
}

function made(path: string, holder: string): boolean {
  try {
    symlinkSync(holder, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function holderIn(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (gone.has((error as NodeJS.ErrnoException).code ?? '')) return undefined
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
  const holder = holderIn(aside)
  if (holder !== undefined && livingHolder(aside) !== undefined) made(path, holder)
  rmSync(aside)
}
