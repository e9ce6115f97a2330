import { createSocket } from 'node:dgram'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createLog } from '../../src/log.ts'
import { Nudges } from '../../src/supervisor/nudges.ts'

const log = createLog('silent')

/** A free UDP port of the loopback. */
async function freePort(): Promise<number> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const { port } = socket.address()
  await new Promise<void>((resolve) => socket.close(resolve))
  return port
}

/** A node's nudges, and how often it was told to poll. */
function node(address: string, peers: readonly string[]) {
  let polls = 0
  const nudges = new Nudges(() => void polls++, log)
  nudges.configure({ address, peers: [...peers] })
  return { nudges, polls: () => polls, [Symbol.dispose]: () => nudges.close() }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(5)
}

test('a commit makes the peers poll, and nobody else', async () => {
  const [a, b, c] = [await freePort(), await freePort(), await freePort()].map((port) => `127.0.0.1:${port}`)
  using writer = node(String(a), [String(b)])
  using peer = node(String(b), [String(a)])
  using other = node(String(c), [])
  // The first may come before the peer listens.
  await until(() => {
    writer.nudges.send()
    return peer.polls() > 0
  })
  expect([writer.polls(), other.polls()]).toEqual([0, 0])
})

test('thousands of forged datagrams cost few polls, and whatever they say is taken for nothing', async () => {
  const port = await freePort()
  using peer = node(`127.0.0.1:${port}`, [])
  const forger = createSocket('udp4')
  const forge = () => forger.send(Buffer.from('{"kind":"written","leaves":[[1,1e9]]}'), port, '127.0.0.1')
  await until(() => {
    forge()
    return peer.polls() > 0
  })
  const before = peer.polls()
  const began = performance.now()
  for (let n = 0; n < 5000; n++) {
    forge()
    if (n % 25 === 0) await delay(1)
  }
  await delay(50)
  const elapsed = performance.now() - began
  expect(peer.polls() - before).toBeLessThanOrEqual(elapsed / 2 + 2)
  forger.close()
})

test('commits in quick succession are few datagrams', async () => {
  const [from, to] = [await freePort(), await freePort()]
  const taker = createSocket('udp4')
  let taken = 0
  taker.on('message', (bytes) => {
    expect(bytes).toHaveLength(0)
    taken++
  })
  await new Promise<void>((resolve) => taker.bind(to, '127.0.0.1', resolve))
  using writer = node(`127.0.0.1:${from}`, [`127.0.0.1:${to}`])
  for (let n = 0; n < 1000; n++) writer.nudges.send()
  await until(() => taken >= 1)
  await delay(50)
  expect(taken).toBeLessThanOrEqual(2)
  taker.close()
})

test('a new configuration closes the old address, and none ends the nudges', async () => {
  const [first, second] = [await freePort(), await freePort()]
  using peer = node(`127.0.0.1:${first}`, [])
  peer.nudges.configure({ address: `127.0.0.1:${second}`, peers: [] })
  const socket = createSocket('udp4')
  await until(() => {
    socket.send('', second, '127.0.0.1')
    return peer.polls() > 0
  })
  peer.nudges.configure(undefined)
  const taker = createSocket('udp4')
  await new Promise<void>((resolve) => taker.bind(second, '127.0.0.1', resolve))
  taker.close()
  socket.close()
})

test('a supervisor whose address is still taken, as in an upgrade, hears nudges once it is free', async () => {
  const address = `127.0.0.1:${await freePort()}`
  const before = node(address, [])
  using after = node(address, [])
  using writer = node(`127.0.0.1:${await freePort()}`, [address])
  await until(() => {
    writer.nudges.send()
    return before.polls() > 0
  })
  before.nudges.close()
  await until(() => {
    writer.nudges.send()
    return after.polls() > 0
  })
})
