import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { handoverVersion } from '../../src/supervisor/upgrade/handover.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Starts the program of an upgrade without being a running server. @param channel whether it gets an IPC channel */
function startSuccessor(channel: boolean) {
  const child = spawn(process.execPath, [main, 'server', '--successor'], {
    stdio: ['ignore', 'pipe', 'pipe', ...(channel ? (['ipc'] as const) : [])],
  })
  if (child.stdout === null || child.stderr === null) throw new Error('no pipes')
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)]
  const outcome = async () => {
    const [code] = await once(child, 'exit')
    return { code, stdout: await stdout, stderr: await stderr }
  }
  return { child, outcome: outcome() }
}

describe('the program of an upgrade', () => {
  test('starts for nobody but a running server', async () => {
    const { outcome } = startSuccessor(false)
    const stderr = 'strongroom: --successor is for the running server alone: use strongroom reload --exec\n'
    expect(await outcome).toEqual({ code: 1, stdout: '', stderr })
  })

  test('ends with a server that has gone before it handed anything over', async () => {
    const { child, outcome } = startSuccessor(true)
    child.disconnect()
    expect(await outcome).toEqual({ code: 1, stdout: '', stderr: 'strongroom: the running server has ended\n' })
  })

  test('takes nothing over from a server whose messages are of another version', async () => {
    const { child, outcome } = startSuccessor(true)
    child.send({ version: handoverVersion + 1, message: { type: 'handover', handover: {} } })
    const { code, stderr } = await outcome
    expect(code).toBe(1)
    expect(stderr).toContain(`messages of version ${handoverVersion + 1} come, and this process knows version`)
  })
})
