import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { DatagramChannel } from '../../src/audit/datagrams.ts'
import { readOptions, type SocketPlace } from '../../src/audit/options.ts'
import { SocketChannel } from '../../src/audit/socket.ts'
import { StreamWriter } from '../../src/audit/streamwriter.ts'
import { Verification } from '../../src/audit/verify.ts'
import { systemClock } from '../../src/clock.ts'
import { runDirectory } from '../support/directory.ts'
import { linesOf } from './device.ts'

/** Lines to collectors on real sockets. */

const names = { node: 'n', device: 'd', incarnation: 'i', epoch: 1 }
const record = (text: string) => [JSON.stringify({ time: '2026-11-22T10:00:00.000Z', text }).slice(0, -1)]

function writerTo(options: Readonly<Record<string, string>>) {
  const logged: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(JSON.parse(line).msg) })
  const { place } = readOptions({ type: 'socket', options })
  const Channel = options.socket_type === 'udp' ? DatagramChannel : SocketChannel
  const channel = new Channel(place as SocketPlace, systemClock)
  return { writer: new StreamWriter({ names, channel, prefix: '', log, register: async () => {} }), logged }
}

interface Collector extends AsyncDisposable {
  readonly address: string
  readonly sockets: Socket[]
  text(): string
}

/** @param reads whether it reads its input */
async function collect(at: number | string = 0, reads = true): Promise<Collector> {
  const sockets: Socket[] = []
  let text = ''
  const server: Server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    if (reads) socket.setEncoding('utf8').on('data', (part: string) => (text += part))
    else socket.pause()
  })
  if (typeof at === 'string') server.listen(at)
  else server.listen(at, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: typeof at === 'string' ? at : `127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    text: () => text,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const texts = (text: string) => linesOf(text).map((line) => (line as unknown as { text: string }).text)

async function problemsOf(text: string, { sequence, hash }: { sequence: number; hash: string }): Promise<string[]> {
  const verification = new Verification(async () => [{ incarnation: 'i', node: 'n', updatedAt: 1, sequence, hash }])
  for (const [index, line] of text.split('\n').entries()) await verification.line(line, String(index))
  return verification.problems()
}

test.each(['tcp', 'unix'])('lines arrive over %s whole, in order and in one chain', async (type) => {
  const at = type === 'unix' ? join(mkdtempSync(join(runDirectory(), 's-')), 's') : 0
  await using collector = await collect(at)
  const { writer } = writerTo({ socket_type: type, address: collector.address })
  const sent = Array.from({ length: 300 }, (_, line) => `${line} ${'x'.repeat(line * 20)}`)
  const written = []
  for (const [index, text] of sent.entries()) {
    written.push(writer.write(record(text)))
    if (index % 50 === 0) await written.at(-1)
  }
  expect(await Promise.all(written)).toEqual(sent.map(() => true))
  await writer.close()
  await expect.poll(() => texts(collector.text())).toEqual(sent)
  expect(await problemsOf(collector.text(), writer.head)).toEqual([])
  expect(await problemsOf(collector.text().split('\n').toSpliced(7, 1).join('\n'), writer.head)).toHaveLength(1)
  expect(collector.sockets).toHaveLength(1)
})

test('over UDP each line is a datagram; one that is too long fails alone, and shows as missing', async () => {
  const socket = createSocket('udp4')
  const datagrams: string[] = []
  socket.on('message', (message) => void datagrams.push(message.toString()))
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const { writer, logged } = writerTo({ socket_type: 'udp', address: `127.0.0.1:${socket.address().port}` })
  expect(await Promise.all(['a', 'b'].map((text) => writer.write(record(text))))).toEqual([true, true])
  expect(await writer.write(record('x'.repeat(70_000)))).toBe(false)
  expect(await writer.write(record('c'))).toBe(true)
  await expect.poll(() => datagrams.map((text) => texts(text))).toEqual([['a'], ['b'], ['c']])
  expect(await problemsOf(datagrams.join(''), writer.head)).toEqual([
    expect.stringContaining('does not follow on line 2'),
  ])
  expect(logged).toEqual(['an audit device cannot be written', 'an audit device can be written again'])
  await writer.close()
  socket.close()
})

test('a collector that reads nothing costs each line a few time limits at most, and nothing waits without bound', async () => {
  await using collector = await collect(0, false)
  const { writer, logged } = writerTo({ address: collector.address, write_timeout: '300ms' })
  const long = record('x'.repeat(1 << 20))
  const lines = Array.from({ length: 40 }, () => writer.write(long))
  // 8 MiB wait at most.
  await expect(Promise.all(lines.slice(9))).resolves.toEqual(Array(31).fill(false))
  let refused = 0
  for (let line = 0; line < 40 && refused === 0; line++) if (!(await writer.write(long))) refused++
  expect(refused).toBe(1)
  expect(logged[0]).toBe('an audit device cannot be written')
  await writer.close()
})

test('a collector that is away is tried again after a pause, and refuses lines at once meanwhile', async () => {
  const first = await collect()
  const { address } = first
  const port = Number(address.split(':')[1])
  const { writer, logged } = writerTo({ address })
  expect(await writer.write(record('a'))).toBe(true)
  await expect.poll(() => texts(first.text())).toEqual(['a'])
  await first[Symbol.asyncDispose]()
  await expect.poll(() => writer.write(record('lost')), { interval: 10 }).toBe(false)
  const { sequence } = writer.head
  for (let line = 0; line < 20; line++) expect(await writer.write(record('refused'))).toBe(false)
  // None of these lines was sent: the chain does not go on over them.
  expect(writer.head.sequence).toBe(sequence)
  await using second = await collect(port)
  await expect.poll(() => writer.write(record('b')), { timeout: 15_000 }).toBe(true)
  await expect.poll(() => second.text()).not.toBe('')
  expect(texts(second.text())).toEqual(['b'])
  expect(logged).toEqual(['an audit device cannot be written', 'an audit device can be written again'])
  await writer.close()
})

test('more than a thousand lines never wait', async () => {
  await using collector = await collect()
  const { writer } = writerTo({ address: collector.address })
  const results = await Promise.all(Array.from({ length: 1100 }, (_, line) => writer.write(record(String(line)))))
  expect([results.indexOf(false), results.filter((written) => !written)]).toEqual([1000, Array(100).fill(false)])
  expect(await writer.write(record('after'))).toBe(true)
  await writer.close()
})

test('lines of 8 MiB may wait in all, and not one character more', async () => {
  await using collector = await collect()
  const { writer } = writerTo({ address: collector.address, write_timeout: '60s' })
  const line = (length: number) => record('x'.repeat(length - record('').join('').length))
  const most = 8 << 20
  expect(await writer.write(line(most + 1))).toBe(false)
  expect(await writer.write(line(most))).toBe(true)
  const several = [line(most - 100), line(100), line(100)].map((one) => writer.write(one))
  expect(await Promise.all(several)).toEqual([true, true, false])
  // Those that went make room.
  expect(await writer.write(line(most))).toBe(true)
  await writer.close()
})

test('a collector that closes each connection at once is not asked without pause', async () => {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { writer } = writerTo({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` })
  const began = performance.now()
  for (let line = 0; line < 500; line++) {
    await writer.write(record('x'))
    await new Promise((resolve) => setImmediate(resolve))
  }
  // 100 ms, 200 ms, 400 ms, …
  const seconds = (performance.now() - began) / 1000
  expect(connections).toBeLessThanOrEqual(3 + Math.log2(1 + 10 * seconds))
  await writer.close()
  server.close()
})
