import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Audit } from '../../src/audit/audit.ts'
import { createInitialDevices } from '../../src/audit/bootstrap.ts'
import { createSystemSettings, Settings } from '../../src/settings/settings.ts'
import { createWorld, type World } from '../auth/world.ts'
import { runDirectory } from '../support/directory.ts'
import { linesOf } from './device.ts'

/** A worker without devices, and one whose devices take nothing. */

let world: World
let audit: Audit
let directory: string
const logged: { level: number; msg: string; path?: string; text?: string }[] = []
beforeAll(async () => {
  world = await createWorld()
  const { database } = world.node
  await database.transaction(async (tx) => {
    await createInitialDevices(database, tx)
    await createSystemSettings(database, tx)
  })
  directory = mkdtempSync(join(runDirectory(), 'audit-'))
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
  audit = new Audit({
    ...{ database, keys: world.keys.audit, settings: new Settings(database), epoch: 1, clock: world.clock, log },
    ...{ durability: 'write', directory, headRetentionDays: 30 },
  })
})
afterAll(async () => {
  await audit[Symbol.asyncDispose]()
  await world[Symbol.asyncDispose]()
})
beforeEach(() => void logged.splice(0))

const fileOf = (name: string) => join(directory, name)
const enable = (name: string) => {
  const options = { file_path: fileOf(name) }
  return audit.enable({ path: name, type: 'file', description: '', options, local: false })
}
/** The device can open its file no more. */
const breakFile = (name: string) => {
  rmSync(fileOf(name))
  mkdirSync(fileOf(name))
}

test('a request has a trail, and is described for it, only if there is a device or it may enable the first', async () => {
  const described: string[] = []
  const begin = (path: string) =>
    audit.begin(path, () => {
      described.push(path)
      const sender = { remoteAddress: '', remotePort: 0, clientCertificate: undefined, mount: undefined }
      return { id: 'i', operation: 'update', path, input: {}, sent: '', credential: '', ...sender }
    })
  for (const path of ['transit/keys/a', 'sys/audit', 'sys/audit-hash/a', '']) expect(await begin(path)).toBeUndefined()
  expect(await begin('sys/audit/first')).toBeDefined()
  expect(described).toEqual(['sys/audit/first'])
  await enable('first')
  expect(await begin('transit/keys/a')).toBeDefined()
  await audit.disable('first')
  expect(await begin('transit/keys/a')).toBeUndefined()
  expect(described).toEqual(['sys/audit/first', 'transit/keys/a'])
})

test('an alarm is in the log if no device takes it, and not where there is none or one does', async () => {
  const missed = () => logged.filter(({ msg }) => msg === 'no audit device could be written')
  await audit.alarm('sys/x', 'without devices')
  expect(missed()).toEqual([])
  await enable('broken')
  breakFile('broken')
  await audit.alarm('sys/x', 'with one that is broken')
  expect(missed()).toMatchObject([{ level: 50, path: 'sys/x', text: 'with one that is broken' }])
  await enable('whole')
  await audit.alarm('sys/y', 'with another')
  expect(missed()).toHaveLength(1)
  const alarms = linesOf(readFileSync(fileOf('whole'), 'utf8')).flatMap(({ alarm }) => alarm ?? [])
  expect(alarms).toMatchObject([{ path: 'sys/y', message: 'with another' }])
  for (const name of ['broken', 'whole']) await audit.disable(name)
})
