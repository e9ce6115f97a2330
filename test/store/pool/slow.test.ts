import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { Connection } from '../../../src/store/pool/connection.ts'
import { Pool } from '../../../src/store/pool/pool.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { Line } from '../line.ts'
import { type Bench, createBench } from '../support.ts'

/** A statement that takes too long says nothing about the node: with large tables it is slow on every node. */

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const statementMilliseconds = 500

/** Two ways to the database, each a node for the pool. */
async function twoNodes() {
  const stack = new AsyncDisposableStack()
  const [first, second] = [stack.use(await Line.open(bench.url)), stack.use(await Line.open(bench.url))]
  const timeouts = { connectMilliseconds: 1000, statementMilliseconds }
  const targets = parseTargets(`${first.url},${second.url}`)
  const pool = stack.use(new Pool({ targets, limit: 4, queueLimit: 8, tls: undefined, timeouts, clock: systemClock }))
  const node = () => pool.use(async (connection) => targets.indexOf(connection.target))
  return { pool, first, node, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const identity = async (connection: Connection) => String((await connection.rows('SELECT CONNECTION_ID()'))[0]?.[0])

test('a statement that timed out costs its own connection: node and idle connections stay', async () => {
  await using nodes = await twoNodes()
  const { pool } = nodes
  const together = Promise.withResolvers<void>()
  let idle = ''
  const other = pool.use(async (connection) => {
    idle = await identity(connection)
    await together.promise
  })
  for (const slow of [
    (connection: Connection) => connection.rows('SELECT SLEEP(3)'),
    (connection: Connection) => connection.command('DO SLEEP(3)'),
  ]) {
    await expect(pool.use<unknown>(slow)).rejects.toThrow('no answer within')
    expect(await nodes.node()).toBe(0)
  }
  together.resolve()
  await other
  expect(await pool.use(identity)).toBe(idle)
})

test.each(['single', 'snapshot', 'change'] as const)(
  'a node that is silent when a session begins (%s) is lost, with what is idle there',
  async (opening) => {
    await using nodes = await twoNodes()
    expect(await nodes.node()).toBe(0)
    nodes.first.silent = true
    await expect(nodes.pool.use((connection) => connection.open(opening, ['SELECT 1']))).rejects.toThrow(
      'no answer within',
    )
    expect(await nodes.node()).toBe(1)
  },
)

test('a statement that breaks off with its line is a lost node', async () => {
  await using nodes = await twoNodes()
  nodes.first.cut = 'before'
  await expect(nodes.pool.use((connection) => connection.command('COMMIT'))).rejects.toThrow()
  expect(await nodes.node()).toBe(1)
})

test('a node that refuses connections is passed over for the next one, from the first use on', async () => {
  const gone = await Line.open(bench.url)
  const { url } = gone
  await gone[Symbol.asyncDispose]()
  const timeouts = { connectMilliseconds: 1000, statementMilliseconds }
  const targets = parseTargets(`${url},${bench.url}`)
  await using pool = new Pool({ targets, limit: 1, queueLimit: 1, tls: undefined, timeouts, clock: systemClock })
  expect(await pool.use(async (connection) => targets.indexOf(connection.target))).toBe(1)
})
