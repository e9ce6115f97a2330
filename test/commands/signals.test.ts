import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runDirectory } from '../support/directory.ts'
import { start } from './cli.ts'

test.each(['SIGHUP', 'SIGUSR2'] as const)('%s does not end a server that is just starting', async (signal) => {
  const file = join(mkdtempSync(join(runDirectory(), 'signals-')), 'config.yaml')
  execFileSync('mkfifo', [file])
  await using server = start(['server', '--config', file])
  // Opens when the server reads its configuration, which does not end until we close it.
  const configuration = await open(file, 'w')
  server.process.kill(signal)
  await configuration.writeFile('workers: none\n')
  await configuration.close()
  expect(await server.ended).toBe(2)
})
