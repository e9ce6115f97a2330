import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readRecord } from '../../src/supervisor/record.ts'
import { runDirectory } from '../support/directory.ts'
import { alive, TestNode, until } from './node.ts'

/** Without those that have ended and are not collected yet. */
const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number).filter(alive)

/** Resolves when so many upgrades have ended. @returns the reason when it failed */
async function outcome(node: TestNode, upgrades = 1): Promise<string | undefined> {
  await until('the upgrade has ended', () => readRecord(node.directory)?.upgrades === upgrades, 60_000)
  return readRecord(node.directory)?.failure
}

/** The shared logs that a process holds: files without a name. */
const logsOf = (pid: number): number => {
  const targets = readdirSync(`/proc/${pid}/fd`).map((descriptor) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${descriptor}`)
    } catch {
      return ''
    }
  })
  return targets.filter((target) => /\/strongroom-[0-9a-f-]{36} \(deleted\)$/.test(target)).length
}

const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path, () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

const said = (node: TestNode, msg: string) => () => node.log.some((line) => line.msg === msg)

describe('an upgrade', () => {
  test('starts the new program on the same address, then drains the old, whose process stays and gets the signals', async () => {
    await using node = new TestNode({ workers: 2 })
    const address = await node.ready
    const [old] = [node.starts]
    const slow = node.ask('/slow')
    node.process.kill('SIGUSR2')
    expect(await outcome(node)).toBeUndefined()
    expect((await slow).status).toBe(200)
    await until('the old workers are gone', () => !old.some(alive))
    expect(new Set((await node.askAll('/', 2)).keys())).toEqual(new Set(node.starts.slice(2)))
    expect(node.output.at(-1)).toBe(`ready ${address}`)
    expect(node.process.exitCode).toBe(null)
    node.configure({ workers: 1 })
    node.process.kill('SIGHUP')
    await until('the new program reads its configuration', async () => node.starts.length === 5)
    node.process.kill('SIGTERM')
    expect(await node.ended).toBe(0)
    expect(node.starts.filter(alive)).toEqual([])
  })

  test('leaves the log that workers share to those who still use it', async () => {
    await using node = new TestNode({ workers: 2 })
    await node.ready
    const pid = node.process.pid ?? 0
    expect(logsOf(pid)).toBe(1)
    const slow = node.ask('/slow')
    node.process.kill('SIGUSR2')
    expect(await outcome(node)).toBeUndefined()
    const [successor = 0] = childrenOf(pid).filter((child) => childrenOf(child).length > 0)
    await until('the old program has closed its own', () => logsOf(pid) === 0)
    expect(logsOf(successor)).toBe(1)
    expect((await slow).status).toBe(200)
  })

  test('passes the PIN over the channel, not by environment, argument or log', async () => {
    await using node = new TestNode()
    await node.ready
    const pid = node.process.pid ?? 0
    const [worker = 0] = node.starts
    node.process.kill('SIGUSR2')
    await outcome(node)
    await until('the old worker is gone', () => !alive(worker))
    expect((await node.ask('/secrets')).answer).toEqual([
      { pin: 'geheim-handed', databasePassword: 'geheim-db' },
      '"[secrets]"',
    ])
    const [successor = 0] = childrenOf(pid)
    for (const one of [successor, node.starts[1]]) {
      expect(readFileSync(`/proc/${one}/environ`, 'utf8')).not.toContain('geheim')
      expect(readFileSync(`/proc/${one}/cmdline`, 'utf8')).not.toContain('geheim')
    }
    expect(JSON.stringify(node.log)).not.toContain('geheim')
  })

  test('lets no worker inherit the listening sockets or the line', async () => {
    await using node = new TestNode({ listeners: "[{ address: '127.0.0.1:0' }, { address: '[::1]:0' }]" })
    await node.ready
    node.process.kill('SIGUSR2')
    await outcome(node)
    await until('the old worker is gone', () => !alive(node.starts[0] ?? 0))
    const [successor = 0] = childrenOf(node.process.pid ?? 0)
    const held = [4, 5, 6].map((descriptor) => readlinkSync(`/proc/${successor}/fd/${descriptor}`))
    expect(held).toEqual(Array(3).fill(expect.stringMatching(/^socket:/)))
    const worker = `/proc/${node.starts[1]}/fd`
    const inherited = readdirSync(worker).map((descriptor) => readlinkSync(`${worker}/${descriptor}`))
    expect(inherited.filter((one) => held.includes(one))).toEqual([])
  })

  test('has its time for each worker that starts', async () => {
    await using node = new TestNode({ workers: 2, timing: { upgradeMilliseconds: 17_000 } })
    await node.ready
    node.order('slow')
    node.process.kill('SIGUSR2')
    expect(await outcome(node)).toBeUndefined()
  })

  test('follows another', async () => {
    await using node = new TestNode()
    await node.ready
    node.process.kill('SIGUSR2')
    expect(await outcome(node)).toBeUndefined()
    await until('it may', said(node, 'the program before this one is drained'))
    node.process.kill('SIGUSR2')
    expect(await outcome(node, 2)).toBeUndefined()
    await until('only the newest worker lives', () => node.starts.filter(alive).length === 1)
    expect((await node.ask('/')).pid).toBe(node.starts[2])
    node.process.kill('SIGTERM')
    expect(await node.ended).toBe(0)
  })

  test('is refused while the program before is still being drained', async () => {
    await using node = new TestNode()
    await node.ready
    void node.ask('/forever').catch(() => undefined)
    await node.ask('/')
    node.process.kill('SIGUSR2')
    expect(await outcome(node)).toBeUndefined()
    node.process.kill('SIGUSR2')
    expect(await outcome(node, 2)).toBe('the program before this one is still being drained')
    expect((await node.ask('/')).pid).toBe(node.starts[1])
    expect(node.starts.filter(alive)).toHaveLength(2)
  })

  test.each([
    ['succeeds', 'serve', 'the new program serves; this one is drained', 1],
    ['fails', 'fail', 'the new program does not serve; this one goes on', 0],
  ])('that %s ends well where it cannot be recorded', async (_, order, msg, server) => {
    await using node = new TestNode()
    await node.ready
    await until('its start is recorded', () => readRecord(node.directory) !== undefined)
    mkdirSync(join(node.directory, 'supervisor.json.new'))
    node.order(order)
    node.process.kill('SIGUSR2')
    await until('it has ended', said(node, msg))
    await until('the log says so', said(node, 'the record for strongroom reload cannot be written'))
    await until('one worker is left', () => node.starts.filter(alive).length === 1)
    expect((await node.ask('/')).pid).toBe(node.starts[server])
    node.process.kill('SIGTERM')
    expect(await node.ended).toBe(0)
  })

  test('of a node that is killed leaves nobody behind', async () => {
    await using node = new TestNode()
    await node.ready
    node.process.kill('SIGUSR2')
    await outcome(node)
    node.process.kill('SIGKILL')
    await node.ended
    await until('every worker is gone', () => !node.starts.some(alive))
  })
})

describe('an upgrade whose new program does not serve', () => {
  test.each([
    ['fails', 'fail', {}, 'the schema cannot be read'],
    ['hangs', 'hang', { upgradeMilliseconds: 2000 }, 'no worker of it came to serve within 2 s'],
  ])('because it %s is given up: the old one goes on and says why', async (_, order, timing, reason) => {
    await using node = new TestNode({ timing })
    await node.ready
    const [worker] = node.starts
    node.order(order)
    node.process.kill('SIGUSR2')
    expect(await outcome(node)).toBe(reason)
    await until('the new program is gone', () => node.starts.filter(alive).length === 1)
    for (let each = 0; each < 4; each++) expect((await node.ask('/')).pid).toBe(worker)
    const said = {
      msg: 'the new program does not serve; this one goes on',
      err: expect.objectContaining({ message: reason }),
    }
    expect(node.log).toContainEqual(expect.objectContaining(said))
  })

  test.each([
    ['cannot listen everywhere', 'serve', {}, /EADDRINUSE/],
    ['hangs', 'hang', { upgradeMilliseconds: 10_000 }, /came to serve/],
  ])('because it %s takes no unix socket away; the next one gets it', async (_, order, timing, reason) => {
    const directory = mkdtempSync(join(runDirectory(), 'unix-'))
    const path = join(directory, 'api')
    const listeners = `{ address: '127.0.0.1:0' }, { address: 'unix:${path}' }`
    await using node = new TestNode({ listeners: `[${listeners}]`, timing })
    await node.ready
    expect(await answers(path)).toBe(true)
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    node.configure({ listeners: `[${listeners}, { address: '127.0.0.1:${port}' }, { address: 'unix:${path}.new' }]` })
    node.order(order)
    node.process.kill('SIGUSR2')
    expect(await outcome(node)).toMatch(reason)
    await until('the new program is gone', () => node.starts.filter(alive).length === 1)
    taken.close()
    expect(await answers(path)).toBe(true)
    expect(existsSync(`${path}.new`)).toBe(false)
    node.configure({ listeners: `[${listeners}]` })
    node.order('serve')
    node.process.kill('SIGUSR2')
    expect(await outcome(node, 2)).toBeUndefined()
    expect(await answers(path)).toBe(true)
    node.process.kill('SIGTERM')
    expect(await node.ended).toBe(0)
    expect(existsSync(path)).toBe(false)
  })

  test('may be tried again', async () => {
    await using node = new TestNode({ order: 'serve' })
    await node.ready
    node.order('fail')
    node.process.kill('SIGUSR2')
    expect(await outcome(node)).toBe('the schema cannot be read')
    node.order('serve')
    node.process.kill('SIGUSR2')
    expect(await outcome(node, 2)).toBeUndefined()
  })

  test('is given up with the node when that is asked to end', async () => {
    await using node = new TestNode()
    await node.ready
    node.order('hang')
    node.process.kill('SIGUSR2')
    await until('the new worker hangs', () => node.starts.length === 2)
    node.process.kill('SIGTERM')
    expect(await node.ended).toBe(0)
    await until('nobody is left', () => !node.starts.some(alive))
  })
})

test('sealing reaches the workers of both programs, whichever is asked', async () => {
  await using node = new TestNode()
  const address = await node.ready
  const [old = 0] = node.starts
  // It keeps the old worker from ending.
  void node.ask('/forever').catch(() => undefined)
  node.process.kill('SIGUSR2')
  await outcome(node)
  expect(alive(old)).toBe(true)
  expect((await node.ask('/seal?to=true')).answer).toBe(true)
  await until('the old worker is sealed', () => readFileSync(`${node.control}.sealed`, 'utf8').includes(`${old}`))
  expect(address).toBe(await node.ready)
  expect((await node.ask('/seal?to=false')).answer).toBe(false)
})

test('a node that is sealed against its disk is sealed after an upgrade too, until it is unsealed', async () => {
  await using node = new TestNode()
  await node.ready
  // Neither can be written through it, nor does it exist.
  symlinkSync('/proc/nowhere', join(node.directory, 'sealed'))
  expect((await node.ask('/seal?to=true')).answer).toContain('its state directory cannot be written')
  node.process.kill('SIGUSR2')
  expect(await outcome(node)).toBeUndefined()
  await until('the old worker is gone', () => !alive(node.starts[0] ?? 0))
  expect((await node.ask('/sealed')).answer).toBe(true)
  expect((await node.ask('/seal?to=false')).answer).toBe(false)
  expect((await node.ask('/sealed')).answer).toBe(false)
  process.kill(node.starts[1] ?? 0, 'SIGKILL')
  await until('its replacement answers', async () => (await node.askAll('/', 1)).has(node.starts[2] ?? 0))
  expect((await node.ask('/sealed')).answer).toBe(false)
})
