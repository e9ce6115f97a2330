import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
