import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** What wrk counted in one run. */
export interface Wrk {
  readonly requests: number
  /** Those without an answer, or with one that is no success. */
  readonly failed: number
  readonly bytes: number
  readonly requestsPerSecond: number
  readonly p50Milliseconds: number
  readonly p99Milliseconds: number
}

const run = promisify(execFile)

/**
 * Strings of Lua in its long form, which knows no escapes; it loses a line break at the beginning, and after another
 * bracket it is not one.
 */
export const luaString = (text: string): string => `[====[${text}]====]`

/** Sends requests as fast as they are answered. @param script of Lua, without `done` @param seconds whole ones */
export async function wrk(
  url: string,
  script: string,
  options: {
    readonly threads: number
    readonly connections: number
    readonly seconds: number
    readonly directory: string
  },
): Promise<Wrk> {
  const file = join(options.directory, 'wrk.lua')
  // It has the token.
  writeFileSync(file, script + done, { mode: 0o600 })
  const load = ['--threads', String(options.threads), '--connections', String(options.connections)]
  const args = [...load, '--duration', `${options.seconds}s`, '--timeout', '60s', '--script', file, url]
  const { stdout } = await run('wrk', args)
  const [requests = 0, microseconds = 0, p50 = 0, p99 = 0, failed = 0, bytes = 0] =
    /^result(.*)$/m.exec(stdout)?.[1]?.trim().split(' ').map(Number) ?? []
  return {
    ...{ requests, failed, bytes },
    requestsPerSecond: requests / (microseconds / 1e6),
    p50Milliseconds: p50 / 1000,
    p99Milliseconds: p99 / 1000,
  }
}

const done = `
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("result %d %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), failed, summary.bytes))
end
`
