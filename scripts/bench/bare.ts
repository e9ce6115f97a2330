/**
 * A process beside Strongroom, on a token of its own: with `raw` it runs an operation in a tight loop whenever it is
 * told to, with an operation's title it is that operation's minimal server. Its parent talks to it over the IPC
 * channel.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MinimalStore } from './authority/store.ts'
import type { Body, Operation } from './operation.ts'
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
/** The message of a minimal server once it serves. */
export interface Serving {
  readonly port: number
  /** The body to send; absent for a GET. */
  readonly body: string | undefined
  readonly bodies: readonly string[] | undefined
  readonly path: string
  readonly variants: number | undefined
}

const [what = '', library = '', label = '', pinFile = '', database = ''] = process.argv.slice(2)
const token = openToken({ library, label, pin: readFileSync(pinFile, 'utf8').trim() })
const tell = (answer: Count | Serving | 'open'): void => void process.send?.(answer)
process.on('disconnect', () => process.exit())

if (what === 'raw') {
  process.on('message', (order: Order) => tell(count(order)))
  tell('open')
} else await serve(operationOf(what))

function count({ operation, milliseconds }: Order): Count {
  const { raw } = operationOf(operation)
  if (raw === undefined) return { operations: 0, cpuMicroseconds: 0 }
  // The first call makes what later ones reuse, such as a key pair.
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

const [jsonType, bytesType] = ['application/json', 'application/octet-stream']

async function serve(operation: Operation): Promise<void> {
  const store = new MinimalStore(database)
  await operation.prepare?.(token, store)
  const server = createServer((request, response) => {
    const send = (made: Body | Buffer): void => {
      const [type, reply] = made instanceof Buffer ? [bytesType, made] : [jsonType, JSON.stringify(made)]
      response.writeHead(200, ['Content-Type', type, 'Content-Length', String(Buffer.byteLength(reply))])
      response.end(reply)
    }
    const answer = (body: Body): void => {
      const made = operation.serve(token, body, store)
      if (made instanceof Promise) made.then(send, fail)
      else send(made)
    }
    const fail = (error: unknown): void => void response.destroy(error as Error)
    if (request.method === 'GET') {
      answer({ path: request.url })
      return
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      answer(operation.bodies === undefined ? JSON.parse(body.toString()) : { bytes: body })
    })
  })
  server.listen(0, '127.0.0.1', () => {
    const body = operation.body?.(token)
    const { port } = server.address() as AddressInfo
    const { path = '/', variants } = operation
    tell({ port, path, variants, body: body && JSON.stringify(body), bodies: operation.bodies?.(token) })
  })
}
