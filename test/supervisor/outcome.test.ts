import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readRecord, type SupervisorRecord } from '../../src/supervisor/record.ts'
import { upgraded } from '../../src/supervisor/upgrade/outcome.ts'
import { TestNode, until } from './node.ts'

const short = 500
const long = 60_000

/** A node that serves, and its record. */
async function serving(node: TestNode): Promise<SupervisorRecord> {
  await node.ready
  await until('its start is recorded', () => readRecord(node.directory) !== undefined)
  return readRecord(node.directory) as SupervisorRecord
}

const said = (node: TestNode, msg: string) => () => node.log.some((line) => line.msg === msg)

test('where the record of an upgrade cannot be written, the wait for its outcome ends, and says why', async () => {
  await using node = new TestNode()
  const before = await serving(node)
  mkdirSync(join(node.directory, 'supervisor.json.new'))
  node.process.kill('SIGUSR2')
  const outcome = upgraded(node.directory, before, { startMilliseconds: short, stepMilliseconds: long })
  await expect(outcome).rejects.toThrow(
    `for 0.5 s process ${before.pid} has not written into ${node.directory} how the upgrade goes`,
  )
  await until('it has ended all the same', said(node, 'the new program serves; this one is drained'))
})

test('where it cannot be written any more, the wait ends as well', async () => {
  await using node = new TestNode()
  const before = await serving(node)
  node.order('hang')
  node.process.kill('SIGUSR2')
  await until('its begin is recorded', () => readRecord(node.directory)?.steps === 1)
  const outcome = upgraded(node.directory, before, { startMilliseconds: long, stepMilliseconds: short })
  await expect(outcome).rejects.toThrow('for 0.5 s process')
})

test('an upgrade that goes on from worker to worker is waited for', async () => {
  await using node = new TestNode({ workers: 2 })
  const before = await serving(node)
  node.process.kill('SIGUSR2')
  await upgraded(node.directory, before, { startMilliseconds: long, stepMilliseconds: long })
  // It was asked for, two workers served, it has ended.
  expect(readRecord(node.directory)).toMatchObject({ upgrades: 1, steps: 4 })
})

test('workers that die as soon as they serve do not make an upgrade last for ever', async () => {
  await using node = new TestNode({ workers: 2, timing: { upgradeMilliseconds: 15_000 } })
  const before = await serving(node)
  node.order('brief')
  node.process.kill('SIGUSR2')
  const outcome = upgraded(node.directory, before, { startMilliseconds: long, stepMilliseconds: long })
  await expect(outcome).rejects.toThrow('the new one does not serve: no worker of it came to serve within 15 s')
  // It was asked for, one worker at a time served, it has ended.
  expect(readRecord(node.directory)?.steps).toBe(3)
}, 120_000)
