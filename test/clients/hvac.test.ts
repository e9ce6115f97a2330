import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { useNode } from '../api/node.ts'

const run = promisify(execFile)
const node = useNode()

test.each(['status', 'keys', 'cipher', 'signatures', 'macs', 'keyless', 'moving', 'derived', 'mounts', 'access'])(
  'hvac’s users find everything as they know it: %s',
  async (story) => {
    const { url, rootToken } = node.server
    // Debian's Python, for which python3-hvac is installed.
    const told = run('/usr/bin/python3', ['-B', join(import.meta.dirname, 'stories.py'), story], {
      env: { VAULT_ADDR: url, VAULT_TOKEN: rootToken },
    })
    await expect(told).resolves.toEqual({ stdout: '', stderr: '' })
  },
)
