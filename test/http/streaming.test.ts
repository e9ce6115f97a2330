import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { writePem } from '../../src/crypto/pem.ts'
import { PemText } from '../../src/crypto/pemstream.ts'
import { Stream } from '../../src/stream.ts'
import { hidden, hmac } from '../audit/device.ts'
import { auditKey, type ServedAuthority, serveAuthority } from '../request/authority.ts'
import { dial, hear, hearUntil, statuses } from './wire.ts'

let served: ServedAuthority
beforeAll(async () => {
  served = await serveAuthority()
})
afterAll(() => served.listener.close(1000))
beforeEach(() => serveList(randomBytes(1000)))

function serveList(list: Buffer, more: { claimed?: number; pieceBytes?: number } = {}): void {
  Object.assign(
    served.authority,
    { list, claimed: list.length, pieceBytes: 65_536, opened: 0, taken: 0, closed: 0, free: Number.POSITIVE_INFINITY },
    more,
  )
}
const get = (path: string, extra = '') => `GET /v1/pki/${path} HTTP/1.1\r\nHost: x\r\n${extra}\r\n`
const until = async (holds: () => boolean) => {
  while (!holds()) await delay(5)
}
const content = (list: Buffer) => ({
  content_sha256: hmac(auditKey, createHash('sha256').update(list).digest('hex')),
  content_length: list.length,
})

test.each([1, 47, 48, 49, 1000, 49_152, 65_536, 200_000])(
  'pieces of %i bytes are DER, PEM and PEM in JSON, each with its length',
  async (pieceBytes) => {
    const list = randomBytes(pieceBytes === 1 ? 500 : 200_003)
    serveList(list, { pieceBytes })
    const text = writePem('X509 CRL', list)
    const der = await served.ask('GET', '/v1/pki/crl', { token: '' })
    expect([der.bytes.equals(list), der.headers['content-length']]).toEqual([true, String(list.length)])
    const pem = await served.ask('GET', '/v1/pki/crl/pem', { token: '' })
    expect([pem.text === text, pem.headers['content-length']]).toEqual([true, String(text.length)])
    const json = await served.ask('GET', '/v1/pki/cert/crl', { token: '' })
    expect(json.headers['content-length']).toBe(String(json.bytes.length))
    expect(json.json).toMatchObject({ lease_id: '', warnings: ['a "warning"'], auth: null })
    expect(json.json.data).toEqual({ a: 'ä', certificate: `${text}\n`, revocation_time: 0 })
    expect(Object.keys(json.json.data as object)).toEqual(['a', 'certificate', 'revocation_time'])
    expect(served.authority).toMatchObject({ opened: 3, closed: 3 })
  },
)

test('a list of no bytes is a block of none', async () => {
  serveList(Buffer.alloc(0))
  expect((await served.ask('GET', '/v1/pki/crl', { token: '' })).headers['content-length']).toBe('0')
  expect((await served.ask('GET', '/v1/pki/crl/pem', { token: '' })).text).toBe(writePem('X509 CRL', Buffer.alloc(0)))
})

test('a streamed answer is on record by digest and length of the list, in every form', async () => {
  const { list } = served.authority
  for (const path of ['crl', 'crl/pem', 'cert/crl']) await served.ask('GET', `/v1/bare/${path}`, { token: '' })
  const dataOf = (path: string) => served.linesOf(`bare/${path}`)[1]?.response?.data
  const type = expect.stringMatching(hidden)
  expect(dataOf('crl')).toEqual({ http_content_type: type, http_status_code: 200, ...content(list) })
  expect(dataOf('crl/pem')).toEqual({ http_content_type: type, http_status_code: 200, ...content(list) })
  expect(dataOf('cert/crl')).toEqual({ a: type, revocation_time: 0, certificate: content(list) })
})

test.each(['crl', 'crl/pem', 'cert/crl'])(
  'a list at %s that cannot be sent now is 503; HEAD needs no place',
  async (path) => {
    served.authority.free = 1
    const status = async (method: string) => (await served.ask(method, `/v1/pki/${path}`, { token: '' })).status
    expect([await status('HEAD'), await status('GET'), await status('GET'), await status('HEAD')]).toEqual([
      200, 200, 503, 200,
    ])
    expect(served.authority.opened).toBe(1)
  },
)

test('a list that has not changed needs no place', async () => {
  served.authority.free = 0
  const headers = { 'If-None-Match': '"abc"' }
  expect((await served.ask('GET', '/v1/pki/crl', { token: '', headers })).status).toBe(304)
})

test('HEAD and 304 read nothing of the list', async () => {
  const head = await served.ask('HEAD', '/v1/pki/crl', { token: '' })
  expect([head.status, head.headers['content-length'], head.bytes.length]).toEqual([200, '1000', 0])
  expect((await served.ask('HEAD', '/v1/pki/cert/crl', { token: '' })).status).toBe(200)
  const headers = { 'If-None-Match': '"abc"' }
  expect((await served.ask('GET', '/v1/pki/crl', { token: '', headers })).status).toBe(304)
  expect(served.authority.opened).toBe(0)
})

test('the connection serves on after a stream, and streams that are asked for together come in order', async () => {
  serveList(Buffer.alloc(300_000, 0xff))
  const client = await dial(served.port)
  client.write(get('crl') + get('ca') + get('crl/pem') + get('ca', 'Connection: close\r\n'))
  const heard = await hear(client)
  expect(statuses(heard)).toEqual(['200', '200', '200', '200'])
  expect(heard.split('\xff').length - 1).toBe(300_000)
  expect(heard.endsWith('DER')).toBe(true)
})

test('a client that does not read is cut off, and takes no more of the list than sockets hold', async () => {
  serveList(Buffer.alloc(40_000_000))
  const client = await dial(served.port)
  client.pause()
  client.write(get('crl'))
  await until(() => served.authority.taken > 0)
  await until(() => served.authority.closed === 1)
  expect(served.authority.taken).toBeLessThan(20_000_000)
  client.destroy()
})

test('a client that takes nothing of an answer that is held is cut off too, and one that takes it gets it whole', async () => {
  const list = randomBytes(20_000_000)
  serveList(list)
  expect((await served.ask('GET', '/v1/pki/held', { token: '' })).bytes.equals(list)).toBe(true)
  const client = await dial(served.port)
  client.pause()
  client.write(get('held', 'Connection: close\r\n'))
  await delay(5000)
  let read = 0
  client.on('data', (chunk: Buffer) => {
    read += chunk.length
  })
  client.resume()
  await new Promise((resolve) => client.on('close', resolve))
  expect(read).toBeLessThan(list.length)
})

test('a client that reads slowly but steadily gets everything, though it takes longer than a client may rest', async () => {
  const total = 12_000_000
  serveList(Buffer.alloc(total))
  const client = await dial(served.port)
  let read = 0
  client.on('data', (chunk: Buffer) => {
    read += chunk.length
    client.pause()
    setTimeout(() => client.resume(), 10)
  })
  client.write(get('crl', 'Connection: close\r\n'))
  await new Promise((resolve) => client.on('end', resolve))
  expect(read).toBeGreaterThan(total)
})

test('a client that goes away ends the reading, while it reads and while it does not', async () => {
  serveList(Buffer.alloc(40_000_000))
  const reading = await dial(served.port)
  reading.write(get('crl'))
  await hearUntil(reading, /200 OK/)
  reading.destroy()
  const resting = await dial(served.port)
  resting.pause()
  resting.write(get('crl'))
  await until(() => served.authority.opened === 2)
  resting.destroy()
  await until(() => served.authority.closed === 2)
  expect(served.authority.taken).toBeLessThan(80_000_000)
})

test('a client that goes away with streams still waiting behind another leaves none of them open', async () => {
  serveList(Buffer.alloc(20_000_000))
  const client = await dial(served.port)
  client.pause()
  client.write(get('crl').repeat(3))
  await until(() => served.authority.opened > 0)
  client.destroy()
  await until(() => served.authority.closed === served.authority.opened)
  await delay(50)
  expect(served.authority.closed).toBe(served.authority.opened)
})

test.each([
  ['shorter', 400_000],
  ['longer', 250_000],
])(
  'a list that is %s than it says breaks the connection off, and never runs into the next answer',
  async (_, claimed) => {
    serveList(Buffer.alloc(300_000, 0xff), { claimed })
    const client = await dial(served.port)
    client.write(get('crl') + get('ca', 'Connection: close\r\n'))
    const heard = await hear(client)
    expect(heard).toContain(`Content-Length: ${claimed}\r\n`)
    expect(statuses(heard)).toEqual(['200'])
    expect(heard.split('\xff').length - 1).toBeLessThan(claimed)
    expect(served.authority.closed).toBe(1)
    expect(served.logged.some((line) => line.includes('a streamed answer broke off'))).toBe(true)
  },
)

test('a source that fails midway fails the text that is made of it', async () => {
  const stream = new Stream({
    length: 10,
    sha256: '',
    async *open() {
      yield Buffer.alloc(4)
      throw new Error('the database is away')
    },
  })
  const read = async () => {
    for await (const piece of new PemText('X', stream).stream().pieces()) expect(piece.length).toBeGreaterThan(0)
  }
  await expect(read()).rejects.toThrow('the database is away')
  expect(stream.content).toEqual({ sha256: '', length: 10 })
})
