import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { done } from '../../api/node.ts'
import { runDirectory } from '../../support/directory.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { follow } from './shell.ts'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

test('the commands of docs/ca-practice.md do what they say, in their order', async () => {
  const directory = mkdtempSync(join(runDirectory(), 'ca-practice-'))
  const environment = { VAULT_ADDR: server.url, VAULT_TOKEN: server.rootToken }
  const { code, output } = await follow('ca-practice.md', directory, environment)
  expect(code, output).toBe(0)
}, 300_000)

/** In place of the Vault CLI, which the tests do not have. */
const vault = `#!/bin/bash
set -euo pipefail
. ${join(import.meta.dirname, '../../../docs/api.sh')}
case $1,$2 in
  write,-field=*) api_write "\${@:3}" | field "data.\${2#-field=}" ;;
  write,*) api_write "\${@:2}" ;;
esac
`

test('the commands of docs/pki.md do what they say, in their order', async () => {
  const directory = mkdtempSync(join(runDirectory(), 'pki-'))
  mkdirSync(join(directory, 'bin'))
  writeFileSync(join(directory, 'bin', 'vault'), vault, { mode: 0o755 })
  // The CA of the README, at a path that docs/ca-practice.md leaves alone.
  const root = server.client()
  await done(root.post('sys/mounts/documented', { type: 'pki', config: { max_lease_ttl: '87600h' } }))
  const ca = { common_name: 'Example Root', key_type: 'ec', ttl: '87600h' }
  await done(root.post('documented/root/generate/internal', ca))
  const role = { allowed_domains: 'example.com', allow_subdomains: true, key_type: 'ec' }
  await done(root.post('documented/roles/web', role))
  const places = {
    'http://127.0.0.1:8200/v1/pki': `${server.url}/v1/documented`,
    ...{ '/v1/pki/': '/v1/documented/', ' pki/': ' documented/' },
  }
  const environment = { VAULT_ADDR: server.url, VAULT_TOKEN: server.rootToken }
  const { code, output } = await follow('pki.md', directory, environment, places)
  expect(code, output).toBe(0)
  expect(output.match(/^cert\.pem: OK$/gm), output).toHaveLength(2)
}, 120_000)
