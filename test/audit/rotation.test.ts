import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { done, hello } from '../api/node.ts'
import { childrenOf } from '../attack/nodes.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { enable, linesOf, type TestDevice } from './device.ts'

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
  while (!(await condition())) await delay(50)
}

/** Replaces the workers, as SIGHUP does, and waits until the old ones have ended. */
async function reload(): Promise<void> {
  const before = childrenOf(server.pid)
  process.kill(server.pid, 'SIGHUP')
  await until(() => {
    const now = childrenOf(server.pid)
    return now.length >= 2 && before.every((child) => !now.includes(child))
  })
}

const incarnations = (device: TestDevice, file = device.file) =>
  new Set(linesOf(readFileSync(file, 'utf8')).map(({ chain }) => chain.incarnation))

test('a file that was moved is opened anew after SIGHUP, and every file is whole in itself', async () => {
  const device = await enable(server.client())
  await work(10)
  renameSync(device.file, `${device.file}.1`)
  await work(4)
  // Until then the moved file is the one.
  expect(existsSync(device.file)).toBe(false)
  await reload()
  await work(10)
  const [old, fresh] = [incarnations(device, `${device.file}.1`), incarnations(device)]
  // The test line's chain, and one for each worker; none goes on in the other file.
  expect([old.size, fresh.size]).toEqual([3, 2])
  expect([...old].filter((one) => fresh.has(one))).toEqual([])

  expect(await verify(`${device.file}.1`, device.file)).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^unbroken$/m),
  })
  const missing = await verify(device.file)
  expect(missing.code).toBe(1)
  expect(missing.output).toContain('is missing')
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
