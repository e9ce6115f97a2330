import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { shareMemory } from '../../src/http/budget.ts'
import { answerSoon, beginSoon } from '../../src/http/cohort.ts'
import { createLog } from '../../src/log.ts'
import type { Pipeline, RawRequest } from '../../src/request/exchange.ts'
import { openListener } from './listener.ts'
import { dial } from './wire.ts'

const done: string[] = []
afterEach(() => done.splice(0))
const does = (what: string) => () => void done.push(what)

test('requests of one turn begin at its end in their order, and what is answered at once is written then', async () => {
  for (const name of ['a', 'b']) {
    beginSoon(() => {
      does(`begin ${name}`)()
      answerSoon(does(`answer ${name}`))
    })
    // As between two connections that are read.
    await undefined
  }
  beginSoon(() => queueMicrotask(does('work of another')))
  expect(done).toEqual([])
  await turn()
  expect(done).toEqual(['begin a', 'begin b', 'answer a', 'answer b', 'work of another'])
})

test('they take each step side by side, and those that wait for nothing are answered in the same turn', async () => {
  const serve = async (name: string): Promise<void> => {
    for (const step of [1, 2, 3]) {
      does(`${name}${step}`)()
      await undefined
    }
    answerSoon(does(`answer ${name}`))
  }
  for (const name of ['a', 'b', 'c']) beginSoon(() => void serve(name))
  let turns = 0
  setImmediate(() => turns++)
  await turn()
  expect(turns).toBe(1)
  const steps = ['a1', 'b1', 'c1', 'a2', 'b2', 'c2', 'a3', 'b3', 'c3']
  expect(done).toEqual([...steps, 'answer a', 'answer b', 'answer c'])
})

test('an answer that comes later is written at the end of its own turn, with the others of that turn', async () => {
  const answerLater = (): void => {
    answerSoon(does('answer a'))
    does('work')()
    answerSoon(does('answer b'))
  }
  beginSoon(() => setImmediate(answerLater))
  for (let turns = 0; turns < 3; turns++) await turn()
  expect(done).toEqual(['work', 'answer a', 'answer b'])
})

test('a request that is read while the answers of a turn are written begins in the next turn', async () => {
  beginSoon(() => answerSoon(() => process.nextTick(() => beginSoon(does('tick')))))
  beginSoon(() => answerSoon(() => queueMicrotask(() => beginSoon(does('microtask')))))
  for (let turns = 0; turns < 2; turns++) await turn()
  expect(done.toSorted()).toEqual(['microtask', 'tick'])
})

test('a request that its connection held back for a long answer waits for no other request', async () => {
  const slow = Promise.withResolvers<void>()
  const pipeline: Pipeline = {
    async handle({ rawPath }) {
      if (rawPath === '/slow') await slow.promise
      return { status: 200, headers: [], body: rawPath === '/long' ? 'x'.repeat(400_000) : '' }
    },
  }
  const limits = {
    headersSeconds: 10,
    requestSeconds: 10,
    idleSeconds: 10,
    leastBytesPerSecond: 2048,
    connections: 100,
  }
  const options = { address: '127.0.0.1:0', maxRequestBytes: 1 << 20 }
  const budgets = shareMemory(1024)
  const listener = await openListener(options, { pipeline, log: createLog('silent'), limits, budgets })
  const client = await dial(Number(listener.address.split(':').at(-1)))
  const ask = (target: string): string => `${target} HTTP/1.1\r\nHost: x\r\n\r\n`
  let heard = ''
  client.on('data', (chunk: Buffer) => {
    heard += chunk.toString('latin1')
  })
  client.write(ask('GET /slow') + ask('GET /long'))
  await delay(100)
  // The parser is paused now; the connection keeps what stands before its own cut.
  client.write(ask('GET /third') + ask('LIST /fourth'))
  await delay(100)
  slow.resolve()
  await expect.poll(() => heard.split('HTTP/1.1 200').length - 1, { timeout: 5000 }).toBe(4)
  client.destroy()
  await listener.close(0)
})

test('no more than 64 wait for each other', async () => {
  const numbers = Array.from({ length: 150 }, (_, index) => `${index}`)
  for (const number of numbers.slice(0, 63)) beginSoon(does(number))
  expect(done).toEqual([])
  for (const number of numbers.slice(63)) beginSoon(does(number))
  expect(done).toEqual(numbers.slice(0, 128))
  await turn()
  expect(done).toEqual(numbers)
})

test('a request whose client has gone before it begins has the address of its client', async () => {
  const begun: RawRequest[] = []
  const pipeline: Pipeline = {
    handle(raw) {
      begun.push(raw)
      return { status: 204, headers: [], body: '' }
    },
  }
  const limits = { headersSeconds: 1, requestSeconds: 10, idleSeconds: 10, leastBytesPerSecond: 2048, connections: 100 }
  const options = { address: '127.0.0.1:0', maxRequestBytes: 1 << 20 }
  const budgets = shareMemory(1024)
  const listener = await openListener(options, { pipeline, log: createLog('silent'), limits, budgets })
  // After all that hears the end of the body, and before the end of the turn.
  const leave = (message: unknown): void => {
    const { request } = message as { request: IncomingMessage }
    request.once('end', () => process.nextTick(() => request.socket.destroy()))
  }
  subscribe('http.server.request.start', leave)
  const client = await dial(Number(listener.address.split(':').at(-1)))
  const remotePort = client.localPort
  client.write('POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}')
  await once(client.resume(), 'close')
  unsubscribe('http.server.request.start', leave)
  await listener.close(0)
  expect(begun).toMatchObject([{ remoteAddress: '127.0.0.1', remotePort }])
})
