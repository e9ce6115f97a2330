import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { KnownSet, type SetState } from '../../../src/store/sealed/knownset.ts'
import { createBench, policies, policy, randomName } from '../support.ts'

interface Value {
  readonly name: string
}

test('a set forgets the members that left it, though it is never read again', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await using bench = await createBench()
  const { database } = bench
  const [table, head] = [database.table(policies), database.head('a set')]
  const kept: WeakRef<Value>[] = []
  const keep = ({ name }: { readonly name: string }): Value => {
    const value = { name }
    kept.push(new WeakRef(value))
    return value
  }
  const known = new KnownSet({ name: policies.name, table, head, keep, keyOf: ({ name }) => name, clock: systemClock })
  let state: SetState<Value> = await database.transaction(async (tx) => {
    await head.create(tx)
    return known.read(tx)
  })
  for (let n = 0; n < 20; n++) {
    state = await database.transaction(async (tx) => {
      known.assume(tx, state)
      const gone = Array.from(state.members, (one) => one.id)
      for (const row of await table.lockAll(tx, gone)) await table.remove(tx, row)
      return known.advance(tx, state, { gone, rows: [await table.insert(tx, policy(randomName()))] })
    })
  }
  await new Promise((resolve) => setTimeout(resolve, 50))
  collect()
  expect(state.members.size).toBe(1)
  expect(kept.filter((one) => one.deref() !== undefined)).toHaveLength(1)
})
