import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runDirectory } from '../support/directory.ts'

const script = join(import.meta.dirname, '../../scripts/alone.mjs')

/** A file to work under. */
function createFile(): string {
  const path = join(mkdtempSync(join(runDirectory(), 'alone-')), 'file')
  writeFileSync(path, '')
  return path
}

/** A process that works under the file; `work` is JavaScript in which `write` adds a line to the file itself. */
function start(path: string, work: string): ChildProcess {
  const program = `import { alone } from ${JSON.stringify(script)}
    import { appendFileSync } from 'node:fs'
    import { setTimeout as delay } from 'node:timers/promises'
    const file = ${JSON.stringify(path)}
    const write = (line) => appendFileSync(file, line + '\\n')
    await alone(file, async () => { ${work} })`
  return spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'ignore'] })
}

test('the work of several processes under one file takes turns, also after one of them failed', async () => {
  const path = createFile()
  const work = (n: number) => `write('begins'); await delay(50); write('ends'); if (${n} === 1) throw new Error()`
  const ended = [0, 1, 2, 3].map((n) => once(start(path, work(n)), 'close'))
  const codes = (await Promise.all(ended)).map(([code]) => code)
  expect(codes).toEqual([0, 1, 0, 0])
  expect(readFileSync(path, 'utf8')).toBe('begins\nends\n'.repeat(4))
})

test('a process that is killed at its work lets the next one begin', async () => {
  const path = createFile()
  const holder = start(path, `console.log('working'); await delay(600_000)`)
  if (holder.stdout) await once(holder.stdout, 'data')
  const next = once(start(path, `write('mine')`), 'close')
  holder.kill('SIGKILL')
  expect((await next)[0]).toBe(0)
  expect(readFileSync(path, 'utf8')).toBe('mine\n')
})
