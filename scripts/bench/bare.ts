/**
 * A process beside Strongroom, on a token of its own: with `raw` it runs an operation in a tight loop whenever it is told
 * to, with an operation's title it is that operation's minimal server. Its parent talks to it over the IPC channel.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Operation } from './operation.ts'
import { operationOf } from './operations.ts'
import { openToken } from './token.ts'

/** The parent's order to a raw process. */
export interface Order {
  /** The title of its row. */
  readonly operation: string
  readonly milliseconds: number
}
/** Its answer. */
export interface Count {
  readonly operations: number
  readonly cpuMicroseconds: number
}
/** What a minimal server says when it serves. */
export interface Serving {
  readonly port: number
  /** What to send it; absent for a GET. */
  readonly body: string | undefined
}

const [what = '', library = '', label = '', pinFile = ''] = process.argv.slice(2)
const token = openToken({ library, label, pin: readFileSync(pinFile, 'utf8').trim() })
const tell = (answer: Count | Serving | 'open'): void => void process.send?.(answer)
process.on('disconnect', () => process.exit())

if (what === 'raw') {
  process.on('message', (order: Order) => tell(count(order)))
  tell('open')
} else serve(operationOf(what))

function count({ operation, milliseconds }: Order): Count {
  const { raw } = operationOf(operation)
  if (raw === undefined) return { operations: 0, cpuMicroseconds: 0 }
  // What it takes for the first time, a pair perhaps, is made before.
  raw(token)
  const end = performance.now() + milliseconds
  const before = process.cpuUsage()
  let done = 0
  do {
    raw(token)
    done++
  } while (performance.now() < end)
  const { user, system } = process.cpuUsage(before)
  return { operations: done, cpuMicroseconds: user + system }
}

function serve(operation: Operation): void {
  const json = ['Content-Type', 'application/json']
  const server = createServer((request, response) => {
    const answer = (text: string): void => {
      const reply = JSON.stringify(operation.serve(token, text === '' ? {} : JSON.parse(text)))
      response.writeHead(200, [...json, 'Content-Length', String(Buffer.byteLength(reply))])
      response.end(reply)
    }
    if (request.method === 'GET') {
      answer('')
      return
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => answer(Buffer.concat(chunks).toString()))
  })
  server.listen(0, '127.0.0.1', () => {
    const body = operation.body?.(token)
    const { port } = server.address() as AddressInfo
    tell({ port, body: body && JSON.stringify(body) })
  })
}
