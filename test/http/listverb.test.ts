import { createServer as createPlainServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { proveListVerb } from '../../src/http/listproof.ts'
import { acceptListVerb } from '../../src/http/listverb.ts'
import { createCertificate, dial, hear, hearUntil, statuses } from './wire.ts'

const certificate = createCertificate()
afterAll(() => certificate.remove())

/** What reached the application: `METHOD url [body]`. */
type Seen = string[]
const host = 'Host: x\r\n'
const get = (path: string) => `GET ${path} HTTP/1.1\r\n${host}\r\n`
const list = (path: string, extra = '') => `LIST ${path} HTTP/1.1\r\n${host}${extra}\r\n`
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\n${host}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const last = (path: string) => list(path, 'Connection: close\r\n')

test('the self-test passes on this Node', async () => {
  await proveListVerb()
})

describe.each(['plain', 'tls'] as const)('over %s', (kind) => {
  const servers: Server[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
  })

  function make(seen: Seen, options: ServerOptions = {}, reply = 'ok'): Server {
    const serve = (request: IncomingMessage, response: import('node:http').ServerResponse): void => {
      let body = ''
      request.on('data', (chunk: Buffer) => {
        body += chunk.toString('latin1')
      })
      request.on('end', () => {
        seen.push(`${request.method} ${request.url}${body === '' ? '' : ` [${body}]`}`)
        response.end(reply)
      })
    }
    const tls = { cert: certificate.cert, key: certificate.key, requestCert: true, rejectUnauthorized: false }
    const server = kind === 'tls' ? createTlsServer({ ...tls, ...options }, serve) : createPlainServer(options, serve)
    acceptListVerb(server)
    servers.push(server)
    return server
  }

  async function listen(server: Server): Promise<number> {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }
  const call = (port: number, client = false): Promise<Socket> =>
    dial(port, kind === 'tls' ? certificate : undefined, client ? certificate : undefined)

  /** Sends pieces over a real connection, one by one. */
  async function exchange(pieces: string[], options: ServerOptions = {}): Promise<{ seen: Seen; heard: string }> {
    const seen: Seen = []
    const socket = await call(await listen(make(seen, options)))
    const heard = hear(socket)
    for (const piece of pieces) {
      socket.write(piece, 'latin1')
      if (pieces.length > 1) await delay(2)
    }
    return { heard: await heard, seen }
  }

  /** Gives the server a connection whose chunks are exactly these, and waits for its end. */
  async function chunks(server: Server, pieces: string[]): Promise<string> {
    const [client, remote] = duplexPair()
    server.emit(kind === 'tls' ? 'secureConnection' : 'connection', remote)
    const heard = hear(client as unknown as Socket)
    remote.on('close', () => client.destroy())
    for (const piece of pieces) {
      if (client.destroyed || piece === '') continue
      client.write(piece, 'latin1')
      await delay(0)
    }
    return heard
  }

  test('LIST first, after GET and after POST with a body', async () => {
    const { seen, heard } = await exchange([list('/a'), get('/b'), list('/c'), post('/d', '{"x":1}'), last('/e')])
    expect(seen).toEqual(['LIST /a', 'GET /b', 'LIST /c', 'POST /d [{"x":1}]', 'LIST /e'])
    expect(statuses(heard)).toEqual(['200', '200', '200', '200', '200'])
  })

  test('10,000 on one connection leave no listener behind', async () => {
    const seen: Seen = []
    const server = make(seen)
    let counted: () => number[] = () => []
    server.on('request', ({ socket }: IncomingMessage) => {
      counted = () => ['data', 'drain', 'close', 'end', 'resume'].map((name) => socket.listenerCount(name))
    })
    const socket = await call(await listen(server))
    socket.write(list('/0'))
    await hearUntil(socket, /ok$/)
    const before = counted()
    socket.resume()
    for (let i = 0; i < 99; i++) socket.write(list('/').repeat(100))
    socket.write(list('/').repeat(98))
    socket.write(last('/end'))
    await hear(socket)
    expect(seen.length).toBe(10_000 - 1 + 1)
    expect(new Set(seen)).toEqual(new Set(['LIST /0', 'LIST /', 'LIST /end']))
    expect(counted().every((count, i) => count <= (before[i] ?? 0))).toBe(true)
  })

  const mixed = [get('/a'), list('/b'), post('/c', 'LIST /x HTTP/1.1\r\n\r\n'), '\r\n', list('/d'), last('/e')].join('')
  const answered = ['GET /a', 'LIST /b', 'POST /c [LIST /x HTTP/1.1\r\n\r\n]', 'LIST /d', 'LIST /e']

  test('pipelined in one packet, and cut at every byte', async () => {
    const seen: Seen = []
    const server = make(seen)
    for (let cut = 0; cut < mixed.length; cut++) {
      seen.length = 0
      const heard = await chunks(server, [mixed.slice(0, cut), mixed.slice(cut)])
      expect({ cut, seen }).toEqual({ cut, seen: answered })
      expect(statuses(heard)).toEqual(['200', '200', '200', '200', '200'])
    }
  })

  test.each([1, 2, 3, 4, 5, 7])('in chunks of %i bytes', async (size) => {
    const seen: Seen = []
    const pieces = mixed.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []
    await chunks(make(seen), pieces)
    expect(seen).toEqual(answered)
  })

  test('a real connection, byte by byte', async () => {
    const { seen } = await exchange([...(list('/a') + last('/b'))])
    expect(seen).toEqual(['LIST /a', 'LIST /b'])
  })

  test('LIST may have a body, by length or chunked, and the next message is found', async () => {
    const chunked = 'Transfer-Encoding: chunked\r\n\r\n5\r\nLIST \r\n3\r\nabc\r\n0\r\n'
    const { seen } = await exchange([
      `LIST /a HTTP/1.1\r\n${host}Content-Length: 5\r\n\r\nLIST ${list('/b')}LIST /c HTTP/1.1\r\n${host}${chunked}\r\n${last('/d')}`,
    ])
    expect(seen).toEqual(['LIST /a [LIST ]', 'LIST /b', 'LIST /c [LIST abc]', 'LIST /d'])
  })

  test('a request inside a body stays body, also when a chunk begins with it', async () => {
    const body = `x\r\n\r\n${list('/smuggled')}`
    const seen: Seen = []
    const server = make(seen)
    const whole = post('/a', body) + last('/b')
    const start = whole.indexOf('LIST /smuggled')
    for (const cut of [start - 1, start, start + 1, start + 3, start + 5]) {
      seen.length = 0
      await chunks(server, [whole.slice(0, cut), whole.slice(cut)])
      expect(seen).toEqual([`POST /a [${body}]`, 'LIST /b'])
    }
  })

  test('a body full of LIST stays what it is, and the next chunk is read as ever', async () => {
    const seen: Seen = []
    const body = 'LIST '.repeat(500)
    await chunks(make(seen), [post('/a', body), last('/b')])
    expect(seen).toEqual([`POST /a [${body}]`, 'LIST /b'])
  })

  test('a LIST in one chunk behind more than 32 of them in a body is refused, never misread', async () => {
    const seen: Seen = []
    const heard = await chunks(make(seen), [post('/a', 'LIST '.repeat(40)) + last('/b')])
    expect(seen).not.toContain('LIST /b')
    expect(statuses(heard)).toEqual(['400'])
  })

  test('LIST in a header, in a path and in chunk extensions and trailers stays there', async () => {
    const parts = '3;x="LIST / "\r\nabc\r\n0\r\nX-T: LIST / HTTP/1.1\r\n\r\n'
    const { seen } = await exchange([
      `GET /LIST%20 HTTP/1.1\r\n${host}X-A: LIST / HTTP/1.1\r\nLIST: LIST \r\n\r\n`,
      `POST /c HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n${parts}${last('/d')}`,
    ])
    expect(seen).toEqual(['GET /LIST%20', 'POST /c [abc]', 'LIST /d'])
  })

  test('LINK stays LINK, before and after LIST', async () => {
    const link = (path: string) => `LINK ${path} HTTP/1.1\r\n${host}\r\n`
    const { seen } = await exchange([
      link('/a') + list('/b') + link('/c'),
      'LI',
      `NK /d HTTP/1.1\r\n${host}\r\n`,
      last('/e'),
    ])
    expect(seen).toEqual(['LINK /a', 'LIST /b', 'LINK /c', 'LINK /d', 'LIST /e'])
  })

  test.each([
    ['LISTX / HTTP/1.1\r\n\r\n'],
    ['UNLIST / HTTP/1.1\r\n\r\n'],
    ['UN', 'LIST / HTTP/1.1\r\n\r\n'],
    ['L', 'LIST / HTTP/1.1\r\n\r\n'],
    ['list / HTTP/1.1\r\n\r\n'],
    ['HELP / HTTP/1.1\r\n\r\n'],
    ['LIST\t/ HTTP/1.1\r\n\r\n'],
    ['LIST\r\n', ' / HTTP/1.1\r\n\r\n'],
    ['LISX / HTTP/1.1\r\n\r\n'],
    ['LI', 'SX / HTTP/1.1\r\n\r\n'],
    [' LIST / HTTP/1.1\r\n\r\n'],
    ['\u0016\u0003\u0001garbage LIST / HTTP/1.1\r\n\r\n'],
    ['LIST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['LIST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd'],
    ['LIST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n'],
    ['LIST / HTTP/1.1\r\nHost: x\r\n bad fold\r\n\r\n'],
    ['LIST  HTTP/1.1\r\n\r\n'],
    ['LIST / HTTP/9.9\r\n\r\n'],
  ])('%j is answered 400 and the connection ends', async (...pieces) => {
    const { seen, heard } = await exchange(pieces)
    expect(seen).toEqual([])
    expect(statuses(heard)).toEqual(['400'])
  })

  test('nothing behind a malformed message is read', async () => {
    const { seen, heard } = await exchange([`LISTX / HTTP/1.1\r\n${host}\r\n${list('/a')}${get('/b')}`])
    expect(seen).toEqual([])
    expect(statuses(heard)).toEqual(['400'])
  })

  test('nothing behind Connection: close is read', async () => {
    const { seen } = await exchange([last('/a') + list('/b') + list('/c')])
    expect(seen).toEqual(['LIST /a'])
  })

  test('headers beyond the limit: 431', async () => {
    const { seen, heard } = await exchange([list('/a', `X: ${'y'.repeat(20_000)}\r\n`)])
    expect(seen).toEqual([])
    expect(statuses(heard)).toEqual(['431'])
  })

  test.each(['L', 'LIST', 'LIST /a HTTP/1.1\r\nHost: x\r\n'])('slow after %j: 408', async (begun) => {
    const slow = { headersTimeout: 100, requestTimeout: 200, connectionsCheckingInterval: 50 }
    const { seen, heard } = await exchange([begun], slow)
    expect(seen).toEqual([])
    expect(statuses(heard)).toEqual(['408'])
  })

  test('Expect and Upgrade: the mark stays with its own message', async () => {
    const { seen, heard } = await exchange([
      list('/a', 'Expect: 100-continue\r\n'),
      `LIST /b HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      `LIST /refused HTTP/1.1\r\n${host}Expect: the-impossible\r\n\r\nLINK /c HTTP/1.1\r\n${host}\r\n`,
      last('/d'),
    ])
    expect(seen).toEqual(['LIST /a', 'LIST /b', 'LINK /c', 'LIST /d'])
    expect(statuses(heard)).toEqual(['200', '200', '417', '200', '200'])
  })

  test('a request without Host is refused and the next one keeps its own method', async () => {
    const { seen, heard } = await exchange([`LIST /a HTTP/1.1\r\n\r\nLINK /b HTTP/1.1\r\n${host}\r\n`])
    expect(seen.includes('LIST /b')).toBe(false)
    expect(statuses(heard)[0]).toBe('400')
  })

  test('CONNECT is cut off and takes nothing behind it along', async () => {
    const { seen, heard } = await exchange([`CONNECT x:1 HTTP/1.1\r\n${host}\r\n${list('/a')}`])
    expect(seen).toEqual([])
    expect(heard).toBe('')
  })

  test('the address and the certificate of the client are still known', async () => {
    const server = make([])
    const known = new Promise<unknown[]>((resolve) => {
      server.on('request', ({ socket }: IncomingMessage) => {
        const peer = kind === 'tls' ? (socket as TLSSocket).getPeerCertificate().subject.CN : 'test'
        resolve([socket.remoteAddress, peer])
      })
    })
    const socket = await call(await listen(server), true)
    socket.write(last('/'))
    expect(await known).toEqual(['127.0.0.1', 'test'])
    await hear(socket)
  })

  test('maxRequestsPerSocket counts LIST', async () => {
    const server = make([])
    server.maxRequestsPerSocket = 2
    const socket = await call(await listen(server))
    socket.write(list('/a') + list('/b') + list('/c'))
    expect(statuses(await hearUntil(socket, /503/))).toEqual(['200', '200', '503'])
  })

  test('an idle connection is closed as idle, one in the middle of LIST is not', async () => {
    const seen: Seen = []
    const server = make(seen)
    const port = await listen(server)
    const [idle, busy] = [await call(port), await call(port)]
    idle.write(list('/idle'))
    busy.write(list('/busy'))
    await Promise.all([hearUntil(idle, /ok$/), hearUntil(busy, /ok$/)])
    busy.write('LIS')
    await delay(50)
    const closed = hear(idle)
    server.close()
    server.closeIdleConnections()
    await closed
    busy.write(`T /more HTTP/1.1\r\n${host}Connection: close\r\n\r\n`)
    expect(await hear(busy)).toMatch(/ok$/)
    expect(seen.at(-1)).toBe('LIST /more')
  })

  test('a client that sends and does not read is paused, in the middle of a chunk too, and loses nothing', async () => {
    const seen: Seen = []
    const server = make([])
    server.removeAllListeners('request').on('request', (request, response) => {
      seen.push(`${request.method} ${request.url}`)
      response.end('y'.repeat(200_000))
    })
    const socket = await call(await listen(server))
    socket.pause()
    const total = 300
    for (let i = 0; i < total / 2; i++) socket.write(list(`/${i}`) + get(`/${i}`))
    socket.write(last('/end'))
    await delay(300)
    expect(seen.length).toBeLessThan(total)
    const heard = await hear(socket.resume())
    const expected = Array.from({ length: total / 2 }, (_, i) => [`LIST /${i}`, `GET /${i}`]).flat()
    expect(seen).toEqual([...expected, 'LIST /end'])
    expect(statuses(heard).length).toBe(total + 1)
  })

  test('a client that goes away in the middle harms nobody', async () => {
    const seen: Seen = []
    const port = await listen(make(seen))
    for (const begun of [
      'L',
      'LIST',
      'LIST /a HTTP/1.1\r\n',
      `LIST /a HTTP/1.1\r\n${host}Content-Length: 9\r\n\r\nabc`,
    ]) {
      const socket = await call(port)
      socket.write(begun)
      await delay(5)
      socket.destroy()
    }
    const socket = await call(port)
    socket.write(last('/after'))
    expect(await hear(socket)).toMatch(/ok$/)
    expect(seen).toEqual(['LIST /after'])
  })
})
