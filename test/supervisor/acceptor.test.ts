import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Acceptor } from '../../src/supervisor/acceptor.ts'
import { runDirectory } from '../support/directory.ts'
import { until } from './node.ts'

/**
 * An acceptor with real sockets and one process, which only notes its connections and is free when the test says so.
 */
function given(mostWaiting?: number) {
  const directory = mkdtempSync(join(runDirectory(), 'accept-'))
  const [a, b] = [`unix:${join(directory, 'a')}`, `unix:${join(directory, 'b')}`] as const
  const had: string[] = []
  let asked = 0
  const taker = {
    id: 1,
    free: false,
    serves: () => true,
    give(address: string, connection: Socket) {
      had.push(address.slice(-1))
      taker.free = false
      connection.destroy()
    },
  }
  const takers: (typeof taker)[] = [taker]
  const acceptor = new Acceptor(
    () => {
      asked++
      return takers
    },
    new Map(),
    mostWaiting,
  )
  /** Connects and waits until the connection was offered. */
  const client = async (address: string) => {
    const before = asked
    const socket = connect(address.slice('unix:'.length))
    const ended = once(socket.resume(), 'close').then(() => true)
    await until('it is accepted', () => asked > before)
    return { socket, ended }
  }
  const take = () => {
    taker.free = true
    const before = asked
    acceptor.distribute()
    return asked - before
  }
  return { acceptor, taker, takers, had, a, b, client, take }
}

test('what waits is given to a process that is free, one each time, and no listener waits for the other', async () => {
  const { acceptor, had, a, b, client, take } = given()
  await acceptor.listen([a, b])
  for (const address of [a, a, a, b]) await client(address)
  expect(had).toEqual([])
  for (let each = 0; each < 5; each++) take()
  expect(had).toEqual(['a', 'b', 'a', 'a'])
  acceptor.close('all')
})

test('the work for each that is taken does not grow with those that wait', async () => {
  const { acceptor, a, client, take } = given()
  await acceptor.listen([a])
  for (let each = 0; each < 50; each++) await client(a)
  expect(take()).toBeLessThanOrEqual(2)
  acceptor.close('all')
})

test('more than the limit do not wait: the newest is closed', async () => {
  const { acceptor, had, a, client, take } = given(2)
  await acceptor.listen([a])
  await client(a)
  await client(a)
  const third = await client(a)
  expect(await third.ended).toBe(true)
  for (let each = 0; each < 3; each++) take()
  expect(had).toEqual(['a', 'a'])
  acceptor.close('all')
})

test('what waits at an address that is given up goes to a process that serves it, and is closed without one', async () => {
  const { acceptor, takers, had, a, b, client } = given()
  await acceptor.listen([a, b])
  await client(a)
  await acceptor.listen([b])
  expect(had).toEqual(['a'])
  const waiting = await client(b)
  takers.pop()
  await acceptor.listen([])
  expect(await waiting.ended).toBe(true)
})
