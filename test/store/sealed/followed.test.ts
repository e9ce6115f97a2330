import { expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/clock.ts'
import type { Database } from '../../../src/store/database.ts'
import { DamagedRow } from '../../../src/store/faults.ts'
import { KnownSet } from '../../../src/store/sealed/knownset.ts'
import { createBench, open, policies, policy } from '../support.ts'

/** Two processes that know one set: what each reads when the other has changed it. */

/** A process, and how often it has looked at all rows. */
function processOf(database: Database, clock: Clock) {
  const table = database.table(policies)
  const compared = { times: 0 }
  const counting: typeof table = {
    ...table,
    members: (q) => {
      compared.times++
      return table.members(q)
    },
  }
  const [head, keyOf] = [database.head('a set'), ({ name }: { readonly name: string }) => name]
  const known = new KnownSet({ name: policies.name, table: counting, head, keep: (row) => row, keyOf, clock })
  return {
    compared,
    read: async () =>
      [...(await database.snapshot((q) => known.read(q))).values].map(({ name, text }) => `${name}=${text}`),
    /** Writes a text under a name, or removes the name. */
    set: (name: string, text: string | undefined) =>
      database.transaction(async (tx) => {
        const found = await known.readToChange(tx, ({ values }) => [values.get(name) ?? []].flat())
        const { state } = found
        const [row] = found.rows
        if (text === undefined) {
          if (row) await table.remove(tx, row)
          return known.advance(tx, state, { gone: row ? [row.id] : [], rows: [] })
        }
        const written = row ? await table.update(tx, row, { text }) : await table.insert(tx, policy(name, text))
        return known.advance(tx, state, { gone: [], rows: [written] })
      }),
  }
}

async function twoProcesses() {
  const bench = await createBench()
  const [database, other] = [bench.database, await open(bench.url)]
  const clock = { ...systemClock, now: 0, monotonic: () => clock.now }
  await database.transaction((tx) => database.head('a set').create(tx))
  const [first, second] = [processOf(database, clock), processOf(other, clock)]
  const dispose = async (): Promise<void> => {
    await other[Symbol.asyncDispose]()
    await bench[Symbol.asyncDispose]()
  }
  return { bench, clock, first, second, [Symbol.asyncDispose]: dispose }
}

test('a process that knows a set reads what others have added, changed and removed, and no more', async () => {
  await using world = await twoProcesses()
  const { first, second } = world
  await first.set('a', '1')
  await second.set('b', '2')
  const before = [first.compared.times, second.compared.times]
  await first.set('c', '3')
  await second.set('a', '4')
  expect(await first.read()).toEqual(['a=4', 'b=2', 'c=3'])
  await first.set('b', undefined)
  await first.set('d', '5')
  await second.set('c', undefined)
  expect(await first.read()).toEqual(['a=4', 'd=5'])
  await first.set('d', '6')
  expect(await second.read()).toEqual(['a=4', 'd=6'])
  expect([first.compared.times, second.compared.times]).toEqual(before)
})

test('a process that was away for many changes looks at all rows', async () => {
  await using world = await twoProcesses()
  const { first, second } = world
  await first.set('a', '1')
  await second.read()
  const before = second.compared.times
  for (let n = 0; n < 10; n++) await first.set(`m${n}`, 'x')
  expect(await second.read()).toHaveLength(11)
  expect(second.compared.times).toBe(before + 1)
})

test('a change that was not committed is no state to go on from', async () => {
  await using world = await twoProcesses()
  const { bench, first, second } = world
  await first.set('a', '1')
  await second.set('b', '2')
  await bench.sql(`CREATE TRIGGER refused BEFORE INSERT ON policies FOR EACH ROW
    IF NEW.name = 'bad' THEN SIGNAL SQLSTATE '45000'; END IF`)
  await expect(first.set('bad', 'x')).rejects.toThrow()
  await second.set('c', '3')
  const before = first.compared.times
  expect(await first.read()).toEqual(['a=1', 'b=2', 'c=3'])
  expect(first.compared.times).toBe(before)
})

test('a damaged row is noticed when it changes, where nothing else does, and after ten seconds in any case', async () => {
  await using world = await twoProcesses()
  const { bench, clock, first, second } = world
  for (const name of ['a', 'b', 'c']) await first.set(name, '1')
  expect(await second.read()).toHaveLength(3)
  await bench.sql("UPDATE policies SET text = 'x' WHERE name = 'a'")
  await expect(second.set('a', '2')).rejects.toThrow(DamagedRow)
  await first.set('b', '2')
  // What is known of it is right, and used.
  expect(await second.read()).toEqual(['a=1', 'b=2', 'c=1'])
  await expect(second.read()).rejects.toThrow(DamagedRow)
  // From now on this process believes no head until it has found all rows sound.
  await first.set('b', '3')
  await expect(second.read()).rejects.toThrow(DamagedRow)
  await expect(second.set('c', '2')).rejects.toThrow(DamagedRow)
  clock.now += 9_000
  await first.set('b', '4')
  clock.now += 2_000
  await expect(first.set('b', '5')).rejects.toThrow(DamagedRow)
})

test.each([
  ['edited', "UPDATE policies SET text = 'x' WHERE name = 'a'"],
  ['deleted', "DELETE FROM policies WHERE name = 'a'"],
])('a change that was %s afterwards is refused, and not taken for a removal', async (_, statement) => {
  await using world = await twoProcesses()
  const { bench, first, second } = world
  for (const name of ['a', 'b']) await first.set(name, '1')
  await second.read()
  await first.set('a', '2')
  await bench.sql(statement)
  await expect(second.read()).rejects.toThrow(DamagedRow)
})

test('an earlier revision that was put back is not changed', async () => {
  await using world = await twoProcesses()
  const { bench, first, second } = world
  for (const name of ['a', 'b']) await first.set(name, '1')
  await bench.sql("CREATE TABLE kept SELECT * FROM policies WHERE name = 'a'")
  await first.set('a', '2')
  await second.read()
  await bench.sql('REPLACE INTO policies SELECT * FROM kept')
  await first.set('b', '2')
  await expect(second.set('a', '3')).rejects.toThrow(DamagedRow)
})

test('a row that was deleted is not blessed by the changes of others', async () => {
  await using world = await twoProcesses()
  const { bench, first, second } = world
  for (const name of ['a', 'b']) await first.set(name, '1')
  await second.read()
  await bench.sql("DELETE FROM policies WHERE name = 'a'")
  await first.set('b', '2')
  await expect(processOf(bench.database, systemClock).read()).rejects.toThrow(DamagedRow)
  await expect(first.set('a', '2')).rejects.toThrow(DamagedRow)
})
