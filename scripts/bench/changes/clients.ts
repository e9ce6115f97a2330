import { luaString, wrk } from '../wrk.ts'
import { type Asked, changesOfKey, keysOfClient } from './change.ts'
import type { Drive } from './drive.ts'

interface Target {
  readonly url: string
  readonly rootToken: string
}

/** The number from which the latest run counts: no two runs share a number. */
let latest = 0

/**
 * Clients that send one change after the other without a pause: wrk, with a thread and a connection for each, because
 * they share the cores with the server, and clients in Node cost more.
 * @returns one run of so many whole seconds; its percentiles are those of single requests
 * @throws Error when any answer is no success
 */
export function clientsOf(
  { url, rootToken }: Target,
  asked: Asked,
  clients: number,
  directory: string,
): (seconds: number) => Promise<Drive> {
  return async (seconds) => {
    latest += 100_000
    const load = { threads: clients, connections: clients, seconds, directory }
    const result = await wrk(url, lua(asked, rootToken, latest), load)
    const { requests, failed, requestsPerSecond, p50Milliseconds, p99Milliseconds } = result
    if (requests === 0 || failed > 0) throw new Error(`${failed} of ${requests} requests to ${asked.path} failed`)
    return { changesPerSecond: requestsPerSecond / (asked.next ? 2 : 1), p50Milliseconds, p99Milliseconds }
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
`
