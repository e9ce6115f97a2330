import { expect, test } from 'vitest'
import { RemoteWorker } from './fleet.ts'
import { createBench, policies, policy, randomName } from './support.ts'

test('a process stopped within a transaction loses its locks and its writes', async () => {
  await using bench = await createBench()
  const { database } = bench
  const table = database.table(policies)
  const { id } = await database.transaction((tx) => table.insert(tx, policy(randomName(), 'before')))
  const remote = await RemoteWorker.start(bench.url)
  await remote.hold(id)
  remote.signal('SIGSTOP')
  const updated = await database.transaction(
    async (tx) => {
      const row = await table.get(tx, id)
      if (!row) throw new Error('gone')
      return table.update(tx, row, { text: `${row.text}, after` })
    },
    { deadlineMilliseconds: 60_000 },
  )
  expect(updated).toMatchObject({ text: 'before, after', rev: 2 })
  remote.signal('SIGCONT')
  await remote.kill()
}, 90_000)
