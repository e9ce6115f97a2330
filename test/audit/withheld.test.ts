import { mkdirSync, rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { hello } from '../api/node.ts'
import { openHold } from '../attack/hold.ts'
import { createDatabase } from '../support/database.ts'
import { readMetric } from '../support/metric.ts'
import { startServer } from '../support/server.ts'
import { enable } from './device.ts'

test('with a device that fails between the deed and the answer, the answer is withheld, says what that means, and is counted', async () => {
  await using database = await createDatabase()
  await using line = await openHold(database.url)
  await using server = await startServer({ database: { ...database, url: line.url, urls: [line.url] } })
  const root = server.client()
  const device = await enable(root)
  const failures = () => readMetric(root, 'vault_audit_log_response_failure')
  const before = await failures()
  const held = line.hold('INSERT INTO `transit_keys`')
  const asked = root.post('transit/keys/made')
  await held
  expect(device.of('transit/keys/made').map(({ type }) => type)).toEqual(['request'])
  rmSync(device.directory, { recursive: true })
  line.release()

  const reply = await asked
  expect({ status: reply.status, body: reply.body }).toEqual({
    status: 500,
    body: {
      errors: [
        '1 error occurred:\n\t* no audit device could be written, so the answer is withheld: the request may have been carried out\n\n',
      ],
    },
  })
  mkdirSync(device.directory)
  expect((await root.post('transit/encrypt/made', { plaintext: hello })).status).toBe(200)
  expect(await failures()).toBeGreaterThan(before)
}, 60_000)
