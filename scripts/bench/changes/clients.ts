import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { luaString } from '../load.ts'
import { type Asked, changesOfKey, keysOfClient } from './change.ts'
import type { Drive } from './drive.ts'

interface Target {
  readonly url: string
  readonly rootToken: string
}

const run = promisify(execFile)

/** Requests to an address whose numbers no later run repeats. */
let next = 0

/**
 * Clients that send one change after the other without a pause: wrk, with a thread and a connection for each. They share
 * the cores with the server, so that what they cost counts: a fifth of what a client in Node costs.
 * @returns one run of so many seconds; its times are those of single requests
 * @throws Error when any answer is no success
 */
export function clientsOf(
  { url, rootToken }: Target,
  asked: Asked,
  clients: number,
  directory: string,
): (seconds: number) => Promise<Drive> {
  const script = join(directory, 'changes.lua')
  return async (seconds) => {
    next += 100_000
    writeFileSync(script, lua(asked, rootToken, next), { mode: 0o600 })
    const each = ['--threads', String(clients), '--connections', String(clients)]
    const args = [...each, '--duration', `${Math.ceil(seconds)}s`, '--timeout', '60s', '--script', script, url]
    const { stdout } = await run('wrk', args)
    const [requests = 0, microseconds = 0, p50 = 0, p99 = 0, failed = 0] =
      /^result(.*)$/m.exec(stdout)?.[1]?.trim().split(' ').map(Number) ?? []
    if (requests === 0 || failed > 0) throw new Error(`${failed} of ${requests} requests to ${asked.path} failed`)
    return {
      changesPerSecond: requests / (asked.next ? 2 : 1) / (microseconds / 1e6),
      p50Milliseconds: p50 / 1000,
      p99Milliseconds: p99 / 1000,
    }
  }
}

/** What stands for the names of `Asked`, in Lua. */
const expressions: Readonly<Record<string, string>> = {
  client: 'client',
  n: 'n',
  key: `math.floor(n / ${changesOfKey}) % ${keysOfClient}`,
  even: 'tostring(n % 2 == 0)',
  answer: 'answer',
}

/** The text with its names filled in, in Lua. */
const filled = (text: string): string =>
  text
    .split(/<(\w+)>/)
    .map((part, index) => (index % 2 === 0 ? luaString(part) : `(${expressions[part]})`))
    .join(' .. ')

const format = ({ path, body }: Asked): string => `wrk.format(nil, ${filled(`/v1/${path}`)}, nil, ${filled(body)})`

/** The second request of each change is sent where the answer to the first one was. */
const second = ({ after, asked }: NonNullable<Asked['next']>): string => `
local answer
response = function(status, headers, body)
  local _, at = body:find(${luaString(after)}, 1, true)
  answer = at and body:match('[^"]+', at + 1)
end
local second = function() return ${format(asked)} end
`

const lua = (asked: Asked, token: string, first: number): string => `
wrk.method = 'POST'
wrk.headers['X-Vault-Token'] = ${luaString(token)}
local clients = 0
setup = function(thread)
  thread:set('client', clients)
  clients = clients + 1
end
local n = ${first}
${asked.next === undefined ? '' : second(asked.next)}
request = function()
  ${asked.next === undefined ? '' : 'if answer then return second() end'}
  n = n + 1
  return ${format(asked)}
end
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("result %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), failed))
end
`
