import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Runs `strongroom --help` with its output sent elsewhere by the shell. */
const help = (destination: string): Promise<{ readonly code: number; readonly stderr: string }> =>
  new Promise((resolve) => {
    const script = `"$0" "$1" --help ${destination}; exit \${PIPESTATUS[0]}`
    const child = execFile('bash', ['-c', script, process.execPath, main], (_error, _stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stderr }),
    )
  })

test('a reader who stops reading early is no failure', async () => {
  expect(await help('| true')).toEqual({ code: 0, stderr: '' })
})

test('output that cannot be written is, and is explained', async () => {
  const { code, stderr } = await help('> /dev/full')
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^strongroom: the output could not be written\n {2}because: ENOSPC: .*\n$/),
  })
})
