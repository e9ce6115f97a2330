import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from '../supervisor/node.ts'
import { runDirectory } from '../support/directory.ts'
import { fullPipe } from '../support/fullpipe.ts'

/** Logs more than waits for a reader, then one line more when it is told. */
const program = `
  import { createLog } from './src/log.ts'
  const log = createLog('info')
  for (let each = 0; each < 3000; each++) log.info({ each, text: 'x'.repeat(1000) }, 'many')
  process.send('logged')
  process.once('message', () => { log.info('after'); process.disconnect() })`

test('a log that nobody reads holds nobody up; its reader is told later how many lines are lost', async () => {
  using pipe = fullPipe()
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: `${import.meta.dirname}/../..`,
    stdio: ['ignore', 'ignore', pipe.descriptor, 'ipc'],
  })
  await once(child, 'message')
  let text = ''
  const lines = () =>
    text
      .split('\n')
      .slice(0, -1)
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  await until('it has what waited', () => {
    text += pipe.read()
    return lines().length > 900
  })
  child.send('more')
  await until('it has the last line', () => {
    text += pipe.read()
    return text.includes('after')
  })
  const all = lines()
  const many = all.filter(({ msg }) => msg === 'many').map(({ each }) => each)
  expect(many).toEqual(many.map((_, index) => index))
  expect(all.slice(many.length).map(({ msg }) => msg)).toEqual([
    `${3000 - many.length} lines of the log are lost, because nobody read it`,
    'after',
  ])
})

/** Logs to a disk without room, to one that has room again, and tells whether anything was thrown. */
const onDisk = `
  import { createLog } from './src/log.ts'
  import { closeSync, openSync } from 'node:fs'
  const log = createLog('info')
  log.info('first')
  log.error({ err: new Error('x') }, 'second')
  closeSync(2)
  openSync(process.env.ROOM, 'a')
  log.info('third')
  process.send('logged')
  process.disconnect()`

test('a log whose disk is full throws at nobody; it says later how many lines are lost', async () => {
  const full = openSync('/dev/full', 'w')
  const room = join(mkdtempSync(join(runDirectory(), 'log-')), 'log')
  const child = spawn(process.execPath, ['--input-type=module', '--eval', onDisk], {
    cwd: `${import.meta.dirname}/../..`,
    stdio: ['ignore', 'ignore', full, 'ipc'],
    env: { ...process.env, ROOM: room },
  })
  closeSync(full)
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
  const lines = readFileSync(room, 'utf8').trim().split('\n')
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
    '2 lines of the log are lost, because they could not be written',
    'third',
  ])
})
