import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Below the supervisor's patience with a silent worker. */
const patienceMilliseconds = 4000
const pauseMilliseconds = 10
/** Supervisor and trial kill whoever hangs in a call for this long. */
const longestMilliseconds = 15_000
const clock = new Int32Array(new SharedArrayBuffer(4))

/**
 * Runs `work` while no other process runs work of this name in this directory: a file that only one can make says whose turn it
 * is. What a process left that has died is taken away.
 * @throws Error when its turn does not come
 */
export function alone<T>(directory: string, name: string, work: () => T): T {
  const path = join(directory, name)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  for (let waited = 0; !claim(path); waited += pauseMilliseconds) {
    if (waited >= patienceMilliseconds) throw new Error(`another process holds ${path}`)
    Atomics.wait(clock, 0, 0, pauseMilliseconds)
  }
  try {
    return work()
  } finally {
    rmSync(path, { force: true })
  }
}

function claim(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
  if (abandoned(path)) rmSync(path, { force: true })
  return false
}

/** Its process is gone, or was killed so long ago that its number may be another's by now: no login takes as long. */
function abandoned(path: string): boolean {
  try {
    if (Date.now() - statSync(path).mtimeMs > longestMilliseconds) return true
    return !process.kill(Number(readFileSync(path, 'utf8')) || process.pid, 0)
  } catch (error) {
    // What is gone by itself meanwhile is nobody's to take away.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}
