import { describe, expect, test } from 'vitest'
import { Streams } from '../../../src/engines/pki/publication/streams.ts'

/** A clock that stands still until it is moved. */
function clockAt() {
  let now = 0
  return {
    move(milliseconds: number) {
      now += milliseconds
    },
    wall: () => now,
    monotonic: () => now,
    sleep: async () => undefined,
  }
}

async function* parts(count: number, size = 1) {
  for (let index = 0; index < count; index++) yield Buffer.alloc(size)
}

const full = expect.objectContaining({ status: 503, retryAfterSeconds: 5 })

describe('places for long lists', () => {
  test('are as many as there are, promised or taken', async () => {
    const streams = new Streams(clockAt(), 2)
    streams.promise()
    const first = streams.send(3, parts(3))
    await first.next()
    streams.promise()
    expect(() => streams.promise()).toThrow(full)
    await first.return()
    streams.promise()
    expect(() => streams.promise()).toThrow(full)
  })

  test('are free again when nothing is sent after all', () => {
    const clock = clockAt()
    const streams = new Streams(clock, 1)
    streams.promise()
    expect(() => streams.promise()).toThrow(full)
    clock.move(1001)
    streams.promise()
  })

  test('are free again after a list that could not be read', async () => {
    const streams = new Streams(clockAt(), 1)
    streams.promise()
    const broken = streams.send(
      1,
      (async function* () {
        yield Buffer.alloc(0)
        throw new Error('the segment is gone')
      })(),
    )
    await broken.next()
    await expect(broken.next()).rejects.toThrow('the segment is gone')
    streams.promise()
  })

  test('are taken from clients that read too slowly', async () => {
    const clock = clockAt()
    const streams = new Streams(clock, 1)
    const bytes = 128 * 1024 * 10
    const slow = streams.send(bytes, parts(10, 128 * 1024))
    await slow.next()
    clock.move(69_000)
    await slow.next()
    clock.move(2000)
    await expect(slow.next()).rejects.toThrow('a client read a list too slowly')
    streams.promise()
  })
})
