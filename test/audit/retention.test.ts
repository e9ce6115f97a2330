import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ChainHeads, headRetention, type SealedChain } from '../../src/audit/heads.ts'
import { systemClock } from '../../src/clock.ts'
import { runJob } from '../auth/world.ts'
import { type Bench, createBench } from '../store/support.ts'

/** How long sealed heads of chains stay. */

const day = 24 * 3_600_000
let bench: Bench
let ahead = 0
const clock = { ...systemClock, wall: () => systemClock.wall() + ahead }
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())
beforeEach(async () => {
  ahead = 0
  await bench.sql('DELETE FROM audit_heads')
})

const device = randomUUID()
const chain = (): SealedChain & { head: SealedChain['head'] } => ({
  names: { node: 'n', device, incarnation: randomUUID(), epoch: 1 },
  head: { sequence: 1, hash: 'a' },
})
const heads = () => new ChainHeads({ database: bench.database, clock })
const retire = () => runJob(bench.database, headRetention({ database: bench.database, clock }, 90))
const left = async () => (await heads().of(device)).map(({ incarnation }) => incarnation)

test('a head stays for the declared time after its chain has ended, and then goes', async () => {
  const [ended, later] = [chain(), chain()]
  const own = heads()
  await own.register(ended)
  ahead += 5 * day
  await own.register(later)
  ahead += 85 * day
  await retire()
  expect(new Set(await left())).toEqual(new Set([ended.names.incarnation, later.names.incarnation]))
  ahead += 2 * day
  await retire()
  expect(await left()).toEqual([later.names.incarnation])
})

test('a chain that lives keeps its head, however long nothing is written', async () => {
  const idle = chain()
  const own = heads()
  await own.register(idle)
  for (let passed = 0; passed < 120; passed++) {
    await own.seal([idle])
    if (passed % 30 === 0) await retire()
    ahead += day
  }
  await retire()
  expect(await left()).toEqual([idle.names.incarnation])
  const [row] = await bench.sql('SELECT rev FROM audit_heads')
  // Sealed once a day, not at each check.
  await own.seal([idle])
  await own.seal([idle])
  expect((await bench.sql('SELECT rev FROM audit_heads'))[0]?.rev).toBe(row?.rev + 1)
})

test('many go in bounded transactions; one that was made to look old, or damaged, stays, and holds up no other', async () => {
  const own = heads()
  for (const one of Array.from({ length: 150 }, chain)) await own.register(one)
  ahead += 100 * day
  const [young, damaged] = [chain(), chain()]
  for (const [one, edit] of [
    [young, 'updated_at = 5'],
    [damaged, 'updated_at = 6, rev = 9007199254740993'],
  ] as const) {
    await own.register(one)
    await bench.sql(`UPDATE audit_heads SET ${edit} WHERE incarnation = ?`, [one.names.incarnation])
  }
  const transactions = async () => Number((await bench.sql('SELECT COUNT(*) AS n FROM outcomes'))[0]?.n)
  const before = await transactions()
  await retire()
  const stayed = await bench.sql('SELECT incarnation FROM audit_heads ORDER BY updated_at')
  expect(stayed.map(({ incarnation }) => incarnation)).toEqual([young.names.incarnation, damaged.names.incarnation])
  expect((await transactions()) - before).toBe(3 + 2)
})
