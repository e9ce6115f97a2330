import { fork } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { messageVersion } from '../../src/supervisor/envelope.ts'
import { runDirectory } from '../support/directory.ts'
import { TestNode, until } from './node.ts'

test('a worker whose messages are of another version is replaced, and the log names both versions', async () => {
  await using node = new TestNode({ workers: 2 })
  await node.ready
  await node.ask('/stranger').catch(() => undefined)
  await until('another serves', async () => (await node.askAll('/', 2)).has(node.starts[2] ?? -1))
  const reason = expect.stringMatching(
    new RegExp(`^messages of version 99 come, and this process knows version ${messageVersion}: .*reload --exec`),
  )
  expect(node.log).toContainEqual(expect.objectContaining({ msg: 'process is lost', reason }))
})

test.each([
  ['of another version', { version: 99, message: { type: 'drain' } }, 'version 99'],
  ['without a version', { type: 'drain' }, 'version unknown'],
])('a worker refuses a message %s with an explanation, and ends', async (_, sent, said) => {
  const control = join(mkdtempSync(join(runDirectory(), 'control-')), 'control')
  writeFileSync(control, 'serve')
  const worker = fork(new URL('fixtures/worker.ts', import.meta.url), [], {
    env: { ...process.env, CONTROL: control },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const heard: { version: number; message: { type: string; reason?: string } }[] = []
  worker.on('message', (envelope: (typeof heard)[number]) => heard.push(envelope))
  const ended = new Promise((resolve) => worker.once('exit', (code, signal) => resolve(signal ?? code)))
  worker.send(sent)
  expect(await ended).toBe('SIGKILL')
  expect(heard.every(({ version }) => version === messageVersion)).toBe(true)
  expect(heard.find(({ message }) => message.type === 'failed')?.message.reason).toContain(`messages of ${said} come`)
})
