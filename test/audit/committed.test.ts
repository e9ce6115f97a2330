import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Audit } from '../../src/audit/audit.ts'
import { createInitialDevices } from '../../src/audit/bootstrap.ts'
import { createLog } from '../../src/log.ts'
import { createSystemSettings, Settings } from '../../src/settings/settings.ts'
import type { Database } from '../../src/store/database.ts'
import { createWorld, type World } from '../auth/world.ts'
import { Line } from '../store/line.ts'
import { runDirectory } from '../support/directory.ts'

const directory = mkdtempSync(join(runDirectory(), 'audit-'))

const auditOf = ({ keys, clock }: World, database: Database): Audit =>
  new Audit({
    ...{ database, keys: keys.audit, settings: new Settings(database), epoch: 1, clock, log: createLog('silent') },
    ...{ durability: 'write', directory, headRetentionDays: 30 },
  })

test('a device that was disabled before the database went away is reported as such', async () => {
  await using world = await createWorld()
  const { database } = world.node
  await database.transaction(async (tx) => {
    await createInitialDevices(database, tx)
    await createSystemSettings(database, tx)
  })
  await using here = auditOf(world, database)
  const options = { file_path: join(directory, 'audit.log') }
  await here.enable({ path: 'file', type: 'file', description: '', options, local: false })

  await using line = await Line.open(world.url)
  const { database: elsewhere } = await world.join(line.url)
  await using there = auditOf(world, elsewhere)
  line.cut = 'last'
  await there.disable('file')
  expect(line.cut).toBe('none')
  expect(await here.list()).toEqual([])
}, 60_000)
