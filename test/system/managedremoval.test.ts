import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Engine } from '../../src/engine.ts'
import { Mounts } from '../../src/request/mounts/mounts.ts'
import { createMountSet } from '../../src/request/mounts/rows.ts'
import type { Call } from '../../src/route.ts'
import type { Transaction } from '../../src/store/reader.ts'
import type { noFields, SystemContext } from '../../src/system/context.ts'
import { removeManagedKey } from '../../src/system/routes/managedkeys.ts'
import { createBench } from '../store/support.ts'

type Check = (tx: Transaction, id: string) => Promise<void>

test('a managed key is not removed while a mount uses it that was made after the removal had begun', async () => {
  await using bench = await createBench()
  const { database } = bench
  const engine: Engine = {
    ...{ type: 'transit', routes: [], context: {} },
    managedKeyUses: async (_tx, _id, mounts) => mounts.map(({ path }) => `${path}keys/k version 1`),
  }
  const engines = new Map([['transit', engine]])
  await database.transaction((tx) => createMountSet(database, tx))
  const mounts = new Mounts({ database, engines, builtin: [], clock: systemClock })
  const managedKeys = {
    async remove(_name: string, check: Check) {
      await mounts.enable({ path: 'late', type: 'transit' })
      await database.transaction((tx) => check(tx, 'id'))
    },
  }
  const context = { mounts, engines, managedKeys } as unknown as SystemContext
  const call = { context, params: { type: 'pkcs11', name: 'k' } } as unknown as Call<SystemContext, typeof noFields>
  await expect(removeManagedKey.run(call)).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('is used by late/keys/k version 1'),
  })
})
