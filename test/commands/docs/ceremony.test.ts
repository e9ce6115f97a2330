import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSite } from '../site.ts'
import { freePort } from './port.ts'
import { follow } from './shell.ts'

test('the commands of docs/ceremony.md begin a cluster, prove its components and replace its KEKs', async () => {
  await using site = await createSite()
  const address = `127.0.0.1:${await freePort()}`
  const auditDirectory = join(site.directory, 'var/log/strongroom')
  mkdirSync(auditDirectory, { recursive: true })
  site.configure({ listeners: [{ address }], workers: 2, audit: { directory: auditDirectory } })
  const environment = { STRONGROOM_CONFIG: site.file, VAULT_ADDR: `http://${address}` }
  const { code, output } = await follow('ceremony.md', site.directory, environment)
  expect(code, output).toBe(0)
}, 900_000)
