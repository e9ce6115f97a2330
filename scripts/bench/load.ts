import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LoadRequest, Server } from './server.ts'
import { luaString, wrk } from './wrk.ts'

/** One run of the load generator against one server. */
export interface Load {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly cpuMicrosecondsPerRequest: number
  readonly p50Milliseconds: number
  readonly p99Milliseconds: number
}

const connections = 16

/**
 * Sends the server's one request over 16 keep-alive connections, as fast as it answers (wrk).
 * @throws Error when any answer was no success, or no refusal where refusals are due, or answers are too short
 */
export async function load(server: Server, seconds: number, directory: string): Promise<Load> {
  const target = server.url + server.request.path
  const first = sent.get(target) ?? 0
  const before = server.cpuMicroseconds()
  const result = await wrk(target, lua(server.request, first, directory), {
    threads: 1,
    connections,
    seconds,
    directory,
  })
  const cpu = server.cpuMicroseconds() - before
  const { requests, failed, bytes } = result
  if (requests === 0 || failed !== (server.request.refused ? requests : 0))
    throw new Error(`${failed} of ${requests} requests to ${server.request.path} failed`)
  if (bytes / requests < (server.request.leastBytes ?? 0))
    throw new Error(`answers to ${server.request.path} are too short: ${bytes} bytes in ${requests}`)
  sent.set(target, first + requests)
  const { requestsPerSecond, p50Milliseconds, p99Milliseconds } = result
  return { requests, requestsPerSecond, cpuMicrosecondsPerRequest: cpu / requests, p50Milliseconds, p99Milliseconds }
}

const zeros = '00000000'

/**
 * Requests of all runs to an address: the next run goes on where the last one ended, so that its first values are in no
 * cache.
 */
const sent = new Map<string, number>()

/**
 * Before each request the digits in the body, or in the path of a GET, count on; in a path they stand as octets of a
 * serial.
 */
function counting(path: string, body: string | undefined, variants: number, first: number): string {
  const [text, wanted] = body === undefined ? [path, '00-00-00-00'] : [body, zeros]
  const at = text.indexOf(wanted)
  if (at < 0) throw new Error(`where there are variants there are zeros: ${wanted}`)
  const digits = `string.format("%0${zeros.length}d", count)`
  const counted = body === undefined ? `${digits}:gsub("..", "%0-"):sub(1, -2)` : digits
  const written = `${luaString(text.slice(0, at))} .. ${counted} .. ${luaString(text.slice(at + wanted.length))}`
  return `
local count = ${first}
request = function()
  count = (count + 1) % ${variants}
  return wrk.format(nil, ${body === undefined ? written : 'nil'}, nil, ${body === undefined ? 'nil' : written})
end
`
}

/**
 * Before each request the next body; Lua's long strings would change their line breaks, so that they come from a file.
 */
function takingTurns(bodies: readonly string[], first: number, directory: string): string {
  const file = join(directory, 'bodies.hex')
  writeFileSync(file, bodies.join('\n'), { mode: 0o600 })
  return `
local bodies = {}
for line in io.lines(${luaString(file)}) do
  bodies[#bodies + 1] = line:gsub("..", function(digits) return string.char(tonumber(digits, 16)) end)
end
local count = ${first}
request = function()
  count = count + 1
  return wrk.format(nil, nil, nil, bodies[count % #bodies + 1])
end
`
}

const lua = (
  { method, path, headers, body, bodies, variants }: LoadRequest,
  first: number,
  directory: string,
): string => `
wrk.method = ${luaString(method)}
${Object.entries(headers)
  .map(([name, value]) => `wrk.headers[ ${luaString(name)} ] = ${luaString(value)}`)
  .join('\n')}
${body === undefined ? '' : `wrk.body = ${luaString(body)}`}
${variants === undefined ? '' : counting(path, body, variants, first)}
${bodies === undefined ? '' : takingTurns(bodies, first, directory)}
`
