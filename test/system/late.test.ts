import { afterAll, beforeAll, expect, test } from 'vitest'
import { Line } from '../store/line.ts'
import { createDatabase } from '../support/database.ts'
import { startServer, type TestServer } from '../support/server.ts'

let line: Line
let server: TestServer

beforeAll(async () => {
  const database = await createDatabase()
  line = await Line.open(database.url)
  server = await startServer({ database, config: { database: { url: line.url } } })
}, 120_000)
afterAll(async () => {
  line.silent = false
  await server[Symbol.asyncDispose]()
  await line[Symbol.asyncDispose]()
})

const health = () => server.client('').get('sys/health')

/** Asks until the answer has this status. */
async function healthOf(status: number): Promise<unknown> {
  for (;;) {
    const reply = await health()
    if (reply.status === status) return reply.body
  }
}

test('a database that went silent shows in sys/health and once in the log, and is back by itself', async () => {
  expect((await health()).body).toMatchObject({ hsm: 'ready', database: 'ready' })
  line.silent = true
  expect(await healthOf(503)).toMatchObject({ hsm: 'ready', database: 'late' })
  // Routes that anybody may ask at any time do not wait for the quotas either.
  for (const open of ['sys/seal-status', 'sys/leader', 'sys/init']) {
    expect((await server.client('').get(open)).status).toBe(200)
  }
  const refused = await server.client().get('transit/keys/any')
  expect(refused.status).toBe(503)
  expect(refused.headers['retry-after']).toBe('1')
  line.silent = false
  expect(await healthOf(200)).toMatchObject({ hsm: 'ready', database: 'ready' })
  expect((await server.client().get('transit/keys/any')).status).toBe(404)
  const said = (text: string) => server.output().split(text).length - 1
  expect(said('the versions cannot be read in time')).toBe(1)
  expect(said('the versions are read in time again')).toBe(1)
}, 60_000)
