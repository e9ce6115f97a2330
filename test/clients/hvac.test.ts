import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { useNode } from '../api/node.ts'

const run = promisify(execFile)
const node = useNode()

/** Runs a script with Debian's Python, for which python3-hvac is installed. */
function tell(
  script: string,
  ...args: readonly string[]
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const { url, rootToken } = node.server
  return run('/usr/bin/python3', ['-B', join(import.meta.dirname, script), ...args], {
    env: { VAULT_ADDR: url, VAULT_TOKEN: rootToken, PATH: process.env.PATH },
  })
}

test.each([
  'status',
  'keys',
  'cipher',
  'signatures',
  'macs',
  'keyless',
  'moving',
  'derived',
  'mounts',
  'access',
  'polled',
])('hvac’s users find everything as they know it: %s', async (story) => {
  await expect(tell('stories.py', story)).resolves.toEqual({ stdout: '', stderr: '' })
})

test('hvac’s users find an authority as they know it', async () => {
  await expect(tell('pki.py')).resolves.toEqual({ stdout: '', stderr: '' })
})
