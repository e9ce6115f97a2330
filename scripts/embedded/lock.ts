import { spawnSync } from 'node:child_process'
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** How long the processes of a run that was killed may take to end before we give up on the directory. */
const patienceSeconds = 60

/**
 * Takes the data directory for this process and for every child that is given the descriptor: flock(2) holds until the
 * last of them has closed it, so a new run cannot meet processes of a killed one.
 * @returns the descriptor to hand to children
 * @throws Error when another run is alive
 */
export function lockDirectory(directory: string): number {
  const path = join(directory, 'lock')
  const descriptor = openSync(path, 'a+', 0o600)
  if (!flock(descriptor, '--nonblock')) {
    const owner = Number(readFileSync(path, 'utf8'))
    if (alive(owner)) throw new Error(`${directory} is in use by the running process ${owner}`)
    console.error(`waiting for the processes of the run that was killed …`)
    if (!flock(descriptor, `--wait=${patienceSeconds}`)) throw new Error(`${directory} is still in use: see ${path}`)
  }
  writeFileSync(path, `${process.pid}\n`)
  return descriptor
}

/** flock(1) on an inherited descriptor locks the open file that we share with it, and we keep it. */
function flock(descriptor: number, how: string): boolean {
  const { status, error } = spawnSync('flock', [how, '3'], { stdio: ['ignore', 'ignore', 'inherit', descriptor] })
  if (error) throw error
  return status === 0
}

function alive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch {
    return false
  }
}
