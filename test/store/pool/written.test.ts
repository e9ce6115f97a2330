import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock as clock } from '../../../src/clock.ts'
import { groupOf, leafOf } from '../../../src/store/coherence/leaves.ts'
import { Registry } from '../../../src/store/coherence/registry.ts'
import { Outcomes } from '../../../src/store/pool/outcomes.ts'
import { Pool } from '../../../src/store/pool/pool.ts'
import { WriteSession } from '../../../src/store/pool/session.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { Transactions } from '../../../src/store/pool/transactions.ts'
import type { Transaction } from '../../../src/store/reader.ts'
import { clustered } from '../../support/engine.ts'
import { Line } from '../line.ts'
import { type Bench, counters, createBench } from '../support.ts'

/** What a process knows of its own transaction when it is committed: the caches' safety hangs on it. */

const timeouts = { connectMilliseconds: 3000, statementMilliseconds: 8000 }
const poolOf = (url: string) =>
  new Pool({ targets: parseTargets(url), limit: 1, queueLimit: 10, tls: undefined, timeouts, clock })

let stack: AsyncDisposableStack
let bench: Bench
let line: Line
let transactions: Transactions
let registration: string
beforeEach(async () => {
  stack = new AsyncDisposableStack()
  bench = stack.use(await createBench())
  line = stack.use(await Line.open(bench.url))
  const [own, control] = [stack.use(poolOf(line.url)), stack.use(poolOf(bench.url))]
  registration = await new Registry(control, clock).register('a', 1000)
  transactions = new Transactions(own, clock, new Outcomes(control, clock))
})
afterEach(() => stack.disposeAsync())

const insert = (tx: Transaction) =>
  bench.database.table(counters).insert(tx, { material: crypto.randomUUID(), used: 1 })
const leaf = leafOf('policies', 'a')

test('one that touched a cached value knows its new version, and the workers to wait for', async () => {
  for (const v of [1, 2]) {
    const { versions, look } = await transactions.write(async (tx) => {
      await insert(tx)
      tx.touch('policies', 'a')
    })
    expect(versions).toEqual({ leaves: [[leaf, v]], groups: [[groupOf(leaf), v]] })
    // In a cluster nothing is sent along with a COMMIT.
    expect(look?.registrations).toEqual(clustered ? undefined : new Map([[registration, undefined]]))
  }
})

test('one that touched no cached value asks for no workers, and has no versions', async () => {
  for (const cut of ['none', 'after'] as const) {
    line.cut = cut
    const { versions, look } = await transactions.write(insert)
    expect([line.cut, look, versions]).toEqual(['none', undefined, { leaves: [], groups: [] }])
  }
})

test('one whose versions were lost with the answer to its COMMIT says so', async () => {
  line.cut = 'after'
  const { versions, look } = await transactions.write(async (tx) => {
    await insert(tx)
    tx.touch('policies', 'a')
  })
  expect([line.cut, look, versions]).toEqual(['none', undefined, undefined])
  const [row] = await bench.sql('SELECT v FROM version_leaves WHERE leaf = ?', [leaf])
  expect(row?.v).toBe(1)
})

test('its values go into the caches when that is asked for, none when their versions were lost', async () => {
  for (const cut of ['none', 'after'] as const) {
    line.cut = cut
    const told: (readonly (readonly [number, number])[])[] = []
    const { fill } = await transactions.write(async (tx) => {
      tx.touch('policies', 'a')
      WriteSession.of(tx).onVersions((versions) => told.push([...versions]))
    })
    expect(told).toEqual([])
    fill()
    expect(told).toEqual([cut === 'none' ? [[leaf, 1]] : []])
  }
})
