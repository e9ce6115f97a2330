import { once } from 'node:events'
import { createServer } from 'node:http'
import { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { shareMemory } from '../../src/http/budget.ts'
import type { Pace } from '../../src/http/pace.ts'
import { createEdge } from '../../src/http/server.ts'
import { Stream } from '../../src/stream.ts'

/** A connection whose client takes so many bytes a second, without buffers of the system. */
class SteadyConnection extends Duplex {
  readonly #bytesPerSecond: number
  takenBytes = 0

  constructor(bytesPerSecond: number) {
    super()
    this.#bytesPerSecond = bytesPerSecond
  }

  /** A socket's. */
  setTimeout(): this {
    return this
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    setTimeout(
      () => {
        this.takenBytes += chunk.length
        done()
      },
      (chunk.length / this.#bytesPerSecond) * 1000,
    )
  }

  override _final(done: () => void): void {
    this.push(null)
    done()
  }
}

const length = 450_000
const held = Buffer.alloc(length)
const list = new Stream({
  length,
  sha256: '',
  async *open() {
    for (let at = 0; at < length; at += 45_000) yield held.subarray(at, at + 45_000)
  },
})

/** Asks for `/long` and `/short` on a connection that ends when the last of them is answered. @returns bytes it took */
async function take(paths: readonly string[], body: Buffer | Stream, speed: [number, Pace]): Promise<number> {
  const [bytesPerSecond, pace] = speed
  const edge = createEdge({
    pipeline: { handle: ({ rawPath }) => ({ status: 200, headers: [], body: rawPath === '/long' ? body : 'short' }) },
    log: pino({ level: 'silent' }),
    maxRequestBytes: 1000,
    budgets: shareMemory(1024),
    pace,
    secure: false,
    closing: () => false,
    clientCertificate: () => undefined,
  })
  const connection = new SteadyConnection(bytesPerSecond)
  createServer(edge).emit('connection', connection)
  const last = paths.length - 1
  for (const [at, path] of paths.entries()) {
    // The answer before it is on its way.
    while (at > 0 && connection.takenBytes === 0) await delay(5)
    connection.push(`GET ${path} HTTP/1.1\r\nHost: x\r\n${at === last ? 'Connection: close\r\n' : ''}\r\n`)
  }
  await once(connection, 'close')
  return connection.takenBytes
}

test.each([
  ['that is held', held],
  ['that is read while it is sent', list],
])('a client faster than the least pace gets a long answer %s', async (_title, body) => {
  const pace = { idleMilliseconds: 4000, leastBytesPerSecond: 40_000 }
  expect(await take(['/long'], body, [70_000, pace])).toBeGreaterThan(length)
})

test('a short answer is not cut off for a long one in front of it that is still taken', async () => {
  const pace = { idleMilliseconds: 1500, leastBytesPerSecond: 40_000 }
  const alone = await take(['/long'], list, [200_000, pace])
  expect(await take(['/long', '/short'], list, [200_000, pace])).toBeGreaterThan(alone + 'short'.length)
})
