import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { readRecord } from '../../src/supervisor/record.ts'
import { upgraded } from '../../src/supervisor/upgrade/outcome.ts'
import { done } from '../api/node.ts'
import { decrypt, encrypt, workersOf } from '../attack/nodes.ts'
import { alive, until } from '../supervisor/node.ts'
import { createClient } from '../support/client.ts'
import { runDirectory } from '../support/directory.ts'

const script = join(import.meta.dirname, '../../scripts/embedded.ts')

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

const named = (pid: number): string => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()

function readyOf(process: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    if (process.stdout === null) throw new Error('no standard output')
    createInterface(process.stdout).on('line', (line) => line.startsWith('ready ') && resolve(line.slice(6)))
    process.once('close', (code) => reject(new Error(`ended with ${code}`)))
  })
}

test('the private MariaDB of npm start runs on over an upgrade, and ends with the new program at SIGTERM', async () => {
  const data = mkdtempSync(join(runDirectory(), 'start-'))
  const rootToken = 'a-root-token-of-my-own'
  const environment = { STRONGROOM_DATA: data, STRONGROOM_LISTEN: '127.0.0.1:0', STRONGROOM_WORKERS: '1' }
  const node = spawn(process.execPath, [script], {
    env: { ...process.env, ...environment, STRONGROOM_ROOT_TOKEN: rootToken },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    const address = await readyOf(node)
    const root = createClient(() => address, rootToken)
    const database = () => childrenOf(node.pid ?? 0).filter((pid) => named(pid) === 'mariadbd')
    const before = database()
    expect(before).toHaveLength(1)
    await done(root.post('transit/keys/kept'))
    const ciphertext = await encrypt(root, 'kept')
    const record = readRecord(join(data, 'state'))
    if (record === undefined) throw new Error('no server')
    const [worker = 0] = workersOf(record.pid)
    node.kill('SIGUSR2')
    await upgraded(join(data, 'state'), record, { startMilliseconds: 60_000, stepMilliseconds: 120_000 })
    await until('the old worker is gone', () => !alive(worker), 60_000)
    expect((await decrypt(root, 'kept', ciphertext)).status).toBe(200)
    expect(database()).toEqual(before)
    node.kill('SIGTERM')
    const [code] = await once(node, 'exit')
    expect(code).toBe(0)
    expect(before.filter(alive)).toEqual([])
  } finally {
    node.kill('SIGKILL')
  }
}, 240_000)
