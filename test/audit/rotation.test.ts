import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { done, hello } from '../api/node.ts'
import { childrenOf, serving } from '../attack/nodes.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { enable, type Line, linesOf, type TestDevice } from './device.ts'

// Workers are replaced and the verb is run several times.
vi.setConfig({ testTimeout: 120_000 })

let server: TestServer
beforeAll(async () => {
  server = await startServer({ workers: 2 })
}, 120_000)
afterAll(() => server[Symbol.asyncDispose]())

const main = join(import.meta.dirname, '../../src/main.ts')

/** `strongroom audit verify …` */
function verify(...args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [main, 'audit', 'verify', '--config', server.configFile, ...args])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}

async function work(calls: number): Promise<void> {
  for (let call = 0; call < calls; call++) {
    await done(server.client().post('transit/encrypt/orders', { plaintext: hello }))
  }
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(20)
}

const hangUp = (): boolean => process.kill(server.pid, 'SIGHUP')

/** Moves the file of a device as logrotate does, and waits until every serving worker has left it. */
async function rotate(device: TestDevice, name: string): Promise<string> {
  const old = `${device.file}.${name}`
  renameSync(device.file, old)
  hangUp()
  const writers = chainsOf(readFileSync(old, 'utf8'))
  await until(() => boundaries(old, 'closed').length >= Math.min(2, writers.size))
  return old
}

const chainsOf = (text: string): Set<string> => new Set(linesOf(text).map(({ chain }) => chain.incarnation))

/** The boundary lines of a file written so far. A worker may be in the midst of writing its last line. */
function boundaries(file: string, event: string): Line[] {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return linesOf(whole).filter(({ rotation }) => rotation?.event === event)
}

const unbroken = { code: 0, output: expect.stringMatching(/^unbroken$/m) }

test('a file that was moved is opened anew after SIGHUP by the same workers, in the same chains', async () => {
  const device = await enable(server.client())
  await work(10)
  const workers = childrenOf(server.pid)
  renameSync(device.file, `${device.file}.1`)
  await work(4)
  // Until then the moved file is in use.
  expect(existsSync(device.file)).toBe(false)
  hangUp()
  await until(() => boundaries(device.file, 'opened').length === 2)
  await work(10)
  expect(childrenOf(server.pid)).toEqual(workers)
  const [old, fresh] = [linesOf(readFileSync(`${device.file}.1`, 'utf8')), device.lines()]
  for (const [opening] of [...chainsOf(device.text())].map((one) =>
    fresh.filter(({ chain }) => chain.incarnation === one),
  )) {
    const last = old.findLast(({ chain }) => chain.incarnation === opening?.chain.incarnation)
    expect(last).toMatchObject({ type: 'rotation', rotation: { event: 'closed', file: device.file } })
    expect(opening).toMatchObject({ type: 'rotation', rotation: { event: 'opened', file: device.file } })
    expect(opening?.chain.sequence).toBe((last?.chain.sequence ?? 0) + 1)
  }
  expect(await verify(`${device.file}.1`, device.file)).toMatchObject(unbroken)
  await device.disable()
})

test('verify finds a moved file that is missing, cut, or not in its place; --from excuses older files alone', async () => {
  const device = await enable(server.client())
  await work(6)
  const oldest = await rotate(device, '2')
  await work(6)
  const older = await rotate(device, '1')
  await work(6)
  const second = linesOf(readFileSync(older, 'utf8'))
  await device.disable()
  await until(async () => (await verify(oldest, older, device.file)).code === 0)
  const cut = `${older}.cut`
  writeFileSync(cut, readFileSync(older, 'utf8').split('\n').slice(0, -3).join('\n'))
  for (const [files, problem] of [
    [[older, device.file], 'begins in its midst'],
    [[oldest, device.file], 'the file before was cut or swapped, or is not in its place'],
    [[oldest, cut, device.file], 'the file before was cut or swapped, or is not in its place'],
    [[older, oldest, device.file], 'does not follow on'],
    [[oldest, older], 'lacks its line'],
  ] as const) {
    const found = await verify(...files)
    expect([found.code, found.output], files.join()).toEqual([1, expect.stringContaining(problem)])
  }
  // A moment at which the second file had begun: earlier lines may be elsewhere.
  const begun = second.filter(({ rotation }) => rotation?.event === 'opened').map(({ time }) => time)
  const from = new Date(Math.max(...begun.map(Date.parse)) + 1).toISOString()
  expect(await verify('--from', from, older, device.file)).toMatchObject(unbroken)
  const early = new Date(Math.min(...begun.map(Date.parse)) - 1).toISOString()
  expect((await verify('--from', early, older, device.file)).output).toContain('begins in its midst')
})

test('under load no request fails and none is without its two lines, however often and how fast it is rotated', async () => {
  const device = await enable(server.client())
  const ids: string[] = []
  let stopped = false
  const client = async (): Promise<void> => {
    while (!stopped) {
      const reply = await server.client().post('transit/encrypt/orders', { plaintext: hello })
      expect(reply.status, reply.text).toBe(200)
      ids.push(reply.string('request_id'))
    }
  }
  const clients = Array.from({ length: 16 }, client)
  const files: string[] = []
  for (let round = 0; round < 6; round++) {
    const before = ids.length
    await until(() => ids.length > before + 30)
    const old = `${device.file}.${round}`
    renameSync(device.file, old)
    files.push(old)
    hangUp()
    // Two signals at once, and in every second round a third while the first is being handled.
    hangUp()
    if (round % 2 === 1) setTimeout(hangUp, 5)
    await until(() => boundaries(old, 'closed').length === 2)
  }
  stopped = true
  await Promise.all(clients)
  files.push(device.file)
  const lines = files.flatMap((file) => linesOf(readFileSync(file, 'utf8')))
  const written = Map.groupBy(lines, ({ request }) => request?.id)
  for (const id of ids)
    expect(
      written.get(id)?.map(({ type }) => type),
      id,
    ).toEqual(['request', 'response'])
  expect(lines.filter(({ rotation }) => rotation?.event === 'opened')).toHaveLength(12)
  expect(await verify(...files)).toMatchObject(unbroken)
  await device.disable()
})

test('a path that cannot be opened leaves the moved file in use, with an alarm, until SIGHUP finds it mended', async () => {
  const device = await enable(server.client())
  await work(4)
  const old = `${device.file}.1`
  renameSync(device.file, old)
  mkdirSync(device.file)
  hangUp()
  const alarms = () => linesOf(readFileSync(old, 'utf8')).filter(({ alarm }) => alarm !== undefined)
  await until(() => alarms().length === 2)
  expect(alarms()[0]).toMatchObject({ alarm: { path: 'sys/audit', message: expect.stringContaining('EISDIR') } })
  await until(() => server.output().includes('an audit file cannot be opened anew: lines go on into the old one'))
  await work(4)
  expect(linesOf(readFileSync(old, 'utf8')).filter(({ type }) => type === 'response').length).toBeGreaterThanOrEqual(8)
  rmdirSync(device.file)
  hangUp()
  await until(() => boundaries(device.file, 'opened').length === 2)
  await work(4)
  expect(await verify(old, device.file)).toMatchObject(unbroken)
  await device.disable()
})

test('a directory that is moved with its file keeps its lines, and no directory is made', async () => {
  const device = await enable(server.client())
  await work(4)
  const away = `${device.directory}.away`
  renameSync(device.directory, away)
  hangUp()
  const moved = join(away, 'audit.log')
  await until(() => linesOf(readFileSync(moved, 'utf8')).filter(({ alarm }) => alarm !== undefined).length === 2)
  const before = readFileSync(moved, 'utf8').length
  await work(2)
  expect(readFileSync(moved, 'utf8').length).toBeGreaterThan(before)
  expect(existsSync(device.directory)).toBe(false)
  mkdirSync(device.directory)
  hangUp()
  await until(() => boundaries(device.file, 'opened').length === 2)
  expect(await verify(moved, device.file)).toMatchObject(unbroken)
  await device.disable()
})

test('workers that start while the file is moved leave nothing in it', async () => {
  const device = await enable(server.client())
  await work(4)
  for (const [round, lead] of [0, 150, 400].entries()) {
    const before = serving(server)
    process.kill(before[0] ?? 0, 'SIGKILL')
    await delay(lead)
    const old = `${device.file}.${round}`
    renameSync(device.file, old)
    hangUp()
    await until(() => serving(server).filter((pid) => !before.includes(pid)).length === 1)
    await until(() => boundaries(old, 'closed').length >= 1)
    await delay(100)
    const size = readFileSync(old).length
    await work(6)
    expect(readFileSync(old)).toHaveLength(size)
  }
  expect(await verify(...[0, 1, 2].map((round) => `${device.file}.${round}`), device.file)).toMatchObject(unbroken)
  await device.disable()
})

test('verify names what was done to a file: edited, taken out, cut, forged', async () => {
  const device = await enable(server.client())
  await work(8)
  await device.disable()
  // The heads are sealed a moment after the device is gone.
  await until(async () => (await verify(device.file)).output.includes('unbroken'))
  const lines = readFileSync(device.file, 'utf8').split('\n')
  const forged = `${device.file}.forged`
  const judge = async (text: readonly string[]) => {
    writeFileSync(forged, text.join('\n'))
    const { code, output } = await verify(forged)
    expect(code).toBe(1)
    return output
  }
  const edited = lines.map((line, at) => (at === 6 ? line.replace('"operation":"update"', '"operation":"read"') : line))
  expect(await judge(edited)).toMatch(
    /does not follow on line \d+ of chain .*: a line was changed, moved, added or taken out|is not line/,
  )
  expect(await judge(lines.toSpliced(6, 1))).toMatch(/does not follow|lacks its line/)
  expect(await judge(lines.slice(0, -5))).toMatch(/lacks its line \d+, which it had on/)
  expect(await judge(lines.slice(1))).toMatch(/is missing/)
  expect(await judge([])).toContain('there is no audit line')
  const stranger = lines.map((line) => line.replace(/"incarnation":"[^"]+"/, '"incarnation":"made-up"'))
  expect(await judge(stranger)).toContain('no sealed head: it may be forged')
})

test('sealing a node is on record, and so is what it does once it is open again', async () => {
  const device = await enable(server.client())
  await work(4)
  expect((await server.client().post('sys/seal')).status).toBe(204)
  expect(device.of('sys/seal').map(({ type }) => type)).toEqual(['request', 'response'])
  expect((await server.client().get('sys/health')).status).toBe(503)
  await done(server.client('').post('sys/unseal', { key: server.unsealSecret }))
  await work(4)
  expect(device.of('transit/encrypt/orders')).toHaveLength(16)
  expect(await verify(device.file)).toMatchObject({ code: 0, output: expect.stringMatching(/^unbroken$/m) })
  await device.disable()
})

test('lines of a worker that was killed are there as far as they were answered, and their chain is unbroken', async () => {
  const device = await enable(server.client())
  await work(4)
  const answered = device.of('transit/encrypt/orders').length
  const before = childrenOf(server.pid)
  for (const child of before) process.kill(child, 'SIGKILL')
  await until(() => childrenOf(server.pid).filter((child) => !before.includes(child)).length >= 2)
  await until(
    async () =>
      (
        await server
          .client()
          .get('sys/health')
          .catch(() => undefined)
      )?.status === 200,
  )
  await work(4)
  expect(answered).toBe(8)
  expect(device.of('transit/encrypt/orders').length).toBe(16)
  copyFileSync(device.file, `${device.file}.copy`)
  expect(await verify(`${device.file}.copy`)).toMatchObject({ code: 0, output: expect.stringMatching(/^unbroken$/m) })
  await device.disable()
})
