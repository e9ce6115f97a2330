import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { done, hello } from '../api/node.ts'
import { strongroom } from '../commands/cli.ts'
import { runDirectory } from '../support/directory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { enable, linesOf } from './device.ts'

/** Devices of type socket on a whole node. */

let server: TestServer
beforeAll(async () => {
  server = await startServer({ workers: 2 })
}, 120_000)
afterAll(() => server[Symbol.asyncDispose]())

/**
 * A collector; its input is kept by connection, so that lines of two workers stay apart.
 * @param path of a unix socket
 */
async function collect({ reads = true, port = 0, path = '' } = {}) {
  const texts: string[] = []
  const sockets: Socket[] = []
  const listener: Server = createServer((socket) => {
    const at = texts.push('') - 1
    sockets.push(socket)
    socket.on('error', () => undefined).setEncoding('utf8')
    const keep = (part: string): void => {
      texts[at] += part
    }
    if (reads) socket.on('data', keep)
    else socket.pause()
  })
  if (path === '') listener.listen(port, '127.0.0.1')
  else listener.listen(path)
  await once(listener, 'listening')
  return {
    address: path || `127.0.0.1:${(listener.address() as AddressInfo).port}`,
    text: () => texts.join(''),
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

/** A collector of datagrams on the loopback. */
async function collectDatagrams() {
  const texts: string[] = []
  const socket = createSocket('udp4', (message) => void texts.push(message.toString()))
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${socket.address().port}`,
    text: () => texts.join(''),
    async [Symbol.asyncDispose]() {
      socket.close()
    },
  }
}

const open = (path: string, options: object) => server.client().post(`sys/audit/${path}`, { type: 'socket', options })
const encrypt = () => server.client().post('transit/encrypt/orders', { plaintext: hello })

test('every line of every worker arrives, with nothing in clear, and verify accepts what the collector kept', async () => {
  await using collector = await collect()
  const made = await open('wire', { address: collector.address, elide_list_responses: 'true', file_path: 'x' })
  expect([made.status, made.body]).toMatchObject([200, { warnings: ['option file_path is unknown and has no effect'] }])
  const ids: unknown[] = []
  for (let call = 0; call < 10; call++) ids.push((await done(encrypt())).string('request_id'))
  expect((await server.client().get('sys/audit')).body).toMatchObject({
    'wire/': { type: 'socket', options: { address: collector.address } },
  })
  const hash = (await server.client().post('sys/audit-hash/wire', { input: hello })).string('data.hash')
  await done(server.client().delete('sys/audit/wire'))
  const lines = () => linesOf(collector.text())
  await expect.poll(() => lines().filter(({ request }) => ids.includes(request.id))).toHaveLength(20)
  expect(new Set(lines().map(({ chain }) => chain.incarnation)).size).toBe(3)
  for (const secret of [hello, server.rootToken]) expect(collector.text()).not.toContain(`"${secret}"`)
  expect(collector.text()).toContain(hash)
  const file = join(mkdtempSync(join(runDirectory(), 'kept-')), 'lines')
  const verify = () => strongroom(['audit', 'verify', '--config', server.configFile, file])
  await expect
    .poll(
      async () => {
        writeFileSync(file, collector.text())
        const { code, stdout } = await verify()
        return [code, stdout.includes('\nunbroken\n')]
      },
      { timeout: 60_000 },
    )
    .toEqual([0, true])
  writeFileSync(file, collector.text().split('\n').toSpliced(4, 1).join('\n'))
  expect((await verify()).code).toBe(1)
}, 120_000)

test('every line of every worker arrives over UDP and over a unix socket too, in unbroken chains', async () => {
  const directory = mkdtempSync(join(runDirectory(), 'unix-'))
  await using stream = await collect({ path: join(directory, 's') })
  await using datagrams = await collectDatagrams()
  for (const [type, { address }] of [
    ['unix', stream],
    ['udp', datagrams],
  ] as const) {
    const made = await open(type, { socket_type: type, address })
    expect(made.status, made.text).toBe(204)
  }
  const ids: unknown[] = []
  for (let call = 0; call < 10; call++) ids.push((await done(encrypt())).string('request_id'))
  for (const type of ['unix', 'udp']) await done(server.client().delete(`sys/audit/${type}`))
  for (const [type, { text }] of [
    ['unix', stream],
    ['udp', datagrams],
  ] as const) {
    const lines = () => linesOf(text())
    await expect.poll(() => lines().filter(({ request }) => ids.includes(request.id))).toHaveLength(20)
    expect(new Set(lines().map(({ chain }) => chain.incarnation)).size, type).toBe(3)
    const file = join(directory, type)
    const verified = async () => {
      writeFileSync(file, text())
      return (await strongroom(['audit', 'verify', '--config', server.configFile, file])).stdout
    }
    await expect.poll(verified, { timeout: 60_000 }).toContain('\nunbroken\n')
  }
}, 120_000)

test('a collector that reads nothing holds up nobody while a file is written', async () => {
  await using collector = await collect({ reads: false })
  const file = await enable(server.client())
  const made = await open('stuck', { address: collector.address, write_timeout: '500ms' })
  expect(made.status, made.text).toBe(204)
  const failed = () =>
    server
      .output()
      .split('\n')
      .filter((line) => line.includes(collector.address) && line.includes('cannot be written'))
  // The length of a line is bounded, so many are needed to fill the kernel's buffers.
  const many = { batch_input: Array.from({ length: 2500 }, () => ({ plaintext: hello })) }
  let calls = 0
  for (; failed().length === 0 && calls < 400; calls++) {
    expect((await server.client().post('transit/encrypt/orders', many)).status).toBe(200)
  }
  expect(failed().length).toBeGreaterThan(0)
  expect(file.of('transit/encrypt/orders')).toHaveLength(2 * calls)
  await done(server.client().delete('sys/audit/stuck'))
  await file.disable()
}, 180_000)

test('with a collector alone that is away nothing is done, and all is well when it is back', async () => {
  const collector = await collect()
  const port = Number(collector.address.split(':')[1])
  expect((await open('alone', { address: collector.address })).status).toBe(204)
  for (let call = 0; call < 4; call++) await done(encrypt())
  await collector[Symbol.asyncDispose]()
  // The kernel may take one more line of each worker.
  await expect.poll(async () => (await encrypt()).text).toContain('no audit device could be written')
  await using back = await collect({ port })
  await expect.poll(async () => (await encrypt()).status, { timeout: 60_000 }).toBe(200)
  await expect.poll(async () => (await encrypt()).status, { timeout: 60_000 }).toBe(200)
  expect(back.text()).toContain('transit/encrypt/orders')
  await expect.poll(async () => (await server.client().get('sys/audit')).text, { timeout: 30_000 }).toContain('alone/')
  await server.client().delete('sys/audit/alone')
}, 180_000)

test('bad options, and a collector that is not there, are refused by name', async () => {
  for (const [options, text] of [
    [{}, 'address is required'],
    [{ address: 'host' }, 'option address must be host:port'],
    [{ address: '127.0.0.1:0' }, 'option address must be host:port'],
    [{ address: '127.0.0.1:65536' }, 'option address must be host:port'],
    [{ address: '127.0.0.1:9', socket_type: 'tls' }, 'option socket_type must be tcp, udp or unix'],
    [{ address: 'run/s', socket_type: 'unix' }, 'option address must be the absolute path of a unix socket'],
    [{ address: `/${'x'.repeat(107)}`, socket_type: 'unix' }, '107 bytes at most'],
    [{ address: '127.0.0.1:9', write_timeout: 'soon' }, 'option write_timeout: expected'],
    [{ address: '127.0.0.1:9', write_timeout: '0' }, 'option write_timeout: it must be at least 1ms and at most 60s'],
    [{ address: '127.0.0.1:9', write_timeout: '-1s' }, 'option write_timeout: cannot provide negative value'],
    [{ address: '127.0.0.1:9', write_timeout: '61s' }, 'option write_timeout: it must be at least 1ms'],
    [{ address: '127.0.0.1:9', prefix: 'SET ' }, 'option prefix is not available for sockets'],
    [{ address: '127.0.0.1:9', format: 'jsonx' }, 'format must be json'],
    [{ address: '127.0.0.1:1' }, 'audit backend failed test message: connect ECONNREFUSED'],
    [{ address: '/nowhere/s', socket_type: 'unix' }, 'audit backend failed test message: connect ENOENT'],
  ] as const) {
    const reply = await open('bad', options)
    expect([reply.status, reply.text], text).toEqual([400, expect.stringContaining(text)])
  }
  expect((await server.client().get('sys/audit')).body).toMatchObject({ data: {} })
})
