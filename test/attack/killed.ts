import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openHold } from './hold.ts'

/** A commit, counted from 1: `before` the server hears of it, or `after` it has done it. */
export interface FatalCommit {
  readonly url: string
  readonly when: 'before' | 'after'
  readonly nth: number
}

/**
 * Kills a process at one of its commits.
 * @param argsOf of the process, by the URL of its database
 * @returns the lines that it had written, which tell what it had acknowledged
 */
export async function killAtCommit(
  { url, when, nth }: FatalCommit,
  argsOf: (url: string) => readonly string[],
): Promise<string[]> {
  await using line = await openHold(url)
  const trapped = line.trap(when, nth)
  const child = spawn(process.execPath, argsOf(line.url), { stdio: ['ignore', 'pipe', 'inherit'] })
  let acknowledged = ''
  child.stdout.on('data', (text) => {
    acknowledged += text
  })
  await trapped
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
  return acknowledged.split('\n').filter((text) => text !== '')
}
