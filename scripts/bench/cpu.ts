import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const tickMicroseconds = 1e6 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/**
 * CPU time, user and system, of a process with all its threads and of every descendant, in microseconds: proc(5), the
 * fields utime, stime and those of children that were waited for.
 */
export function cpuMicroseconds(pid: number): number {
  const [stat, ...children] = [read(`/proc/${pid}/stat`), ...childrenOf(pid)]
  // The name in parentheses may hold anything; the third field is the first one behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = [14, 15, 16, 17].reduce((sum, field) => sum + Number(fields[field - 3] ?? 0), 0)
  return ticks * tickMicroseconds + children.reduce((sum, child) => sum + cpuMicroseconds(child), 0)
}

/** Pids of the processes that this one started. */
export const childrenOf = (pid: number): number[] =>
  read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)

/** Resident memory of one process, in bytes; 0 when it is gone. */
export const residentBytes = (pid: number): number =>
  1024 * Number(/^VmRSS:\s*(\d+) kB/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0)

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
