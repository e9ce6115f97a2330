import { lstatSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { makeMarker, markerIn } from './marker.ts'

/** Below the supervisor's patience with a silent worker. */
const patienceMilliseconds = 4000
const pauseMilliseconds = 10
/** Supervisor and trial kill a process that hangs in a call for this long. */
const longestMilliseconds = 15_000
/** By then a file left behind counts as abandoned, and several others have had their turns. */
const longestWaitMilliseconds = 60_000
const clock = new Int32Array(new SharedArrayBuffer(4))

/**
 * Runs `work` while no other process runs work of this name in this directory: a marker that only one process can make
 * gives it the turn. The marker of a dead process is removed.
 * @throws Error when its turn does not come
 */
export function alone<T>(directory: string, name: string, work: () => T): T {
  const path = join(directory, name)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  let own = claim(path)
  for (let waited = 0; own === undefined; waited += pauseMilliseconds) {
    if (waited >= patienceMilliseconds) throw new Error(`another process holds ${path}`)
    Atomics.wait(clock, 0, 0, pauseMilliseconds)
    own = claim(path)
  }
  try {
    return work()
  } finally {
    release(path, own)
  }
}

/** As `alone`, for work of many calls: the process can do other work while it waits. */
export async function aloneMeanwhile<T>(directory: string, name: string, work: () => Promise<T>): Promise<T> {
  const path = join(directory, name)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  let own = claim(path)
  for (let waited = 0; own === undefined; waited += pauseMilliseconds) {
    if (waited >= longestWaitMilliseconds) throw new Error(`another process holds ${path}`)
    await delay(pauseMilliseconds)
    own = claim(path)
  }
  try {
    return await work()
  } finally {
    release(path, own)
  }
}

/** The identity of the file, if this process has made it. */
function claim(path: string): string | undefined {
  if (make(path)) return identityOf(path)
  takeAwayAbandoned(path)
  return undefined
}

/** Leaves a file that another process has made since, if this turn took so long that it counted as abandoned. */
function release(path: string, own: string): void {
  if (identityOf(path) === own) rmSync(path, { force: true })
}

/** False if there is one already. */
const make = (path: string): boolean => makeMarker(path, String(process.pid))

/**
 * Several processes may judge a file abandoned at once, and a slow one must not remove its successor: only the maker of
 * a second file, named after the judged one, removes that. If this maker dies, the next makes one of a higher number.
 */
function takeAwayAbandoned(path: string): void {
  const judged = identityOf(path)
  if (judged === undefined || !abandoned(path)) return
  const taker = (number: number) => `${path}.${judged}.${number}`
  let number = 0
  while (!make(taker(number))) {
    if (!abandoned(taker(number))) return
    number++
  }
  if (identityOf(path) === judged) rmSync(path, { force: true })
  for (; number >= 0; number--) rmSync(taker(number), { force: true })
}

/** Distinguishes a file from a later one at the same path; undefined if there is none. */
function identityOf(path: string): string | undefined {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return found && `${found.ino}-${found.mtimeNs}`
}

/** Its process is gone, or it is so old that its process id may be another's by now: no login takes as long. */
function abandoned(path: string): boolean {
  try {
    if (Date.now() - lstatSync(path).mtimeMs > longestMilliseconds) return true
    return !process.kill(Number(markerIn(path)) || process.pid, 0)
  } catch (error) {
    // One that has vanished meanwhile is not abandoned.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}
