import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { shareMemory } from '../../src/http/budget.ts'
import { createEdge } from '../../src/http/server.ts'

test('as many long answers as may wait on a connection are sent, without a warning in the log', async () => {
  const body = 'x'.repeat(20_000)
  const edge = createEdge({
    pipeline: { handle: () => ({ status: 200, headers: [], body }) },
    log: pino({ level: 'silent' }),
    maxRequestBytes: 1000,
    budgets: shareMemory(1024),
    pace: { idleMilliseconds: 10_000, leastBytesPerSecond: 1000 },
    secure: false,
    closing: () => false,
    clientCertificate: () => undefined,
  })
  const warnings: string[] = []
  const note = ({ message }: Error) => warnings.push(message)
  process.on('warning', note)
  const server = createServer(edge).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connection = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const ask = (more = '') => `GET / HTTP/1.1\r\nHost: x\r\n${more}\r\n`
  connection.write(ask().repeat(64) + ask('Connection: close\r\n'))
  expect((await text(connection)).match(/x{20000}/g)).toHaveLength(65)
  server.close()
  process.off('warning', note)
  expect(warnings).toEqual([])
})
