import { Socket } from 'node:net'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { resume, shareTurn } from '../../src/http/turnshare.ts'
import { ServerProcess } from './serverprocess.ts'
import { dial, hearUntil } from './wire.ts'

/** Long bodies that come all at once leave time for others between them. */

const connections = 24
const bodyBytes = 2_500_000
const chunkBytes = 2 ** 16
/** Of all connections together; libuv alone would take up to 2 MiB from each of them. */
const mostBytes = 2 ** 20

test.each([
  // With a chunk of each connection that finds the turn used up, and the one that came with a refused head.
  ['of a caller', 'X-Vault-Token: root\r\n', 200, 1],
  ['that are refused', '', 413, 2],
] as const)('bodies %s are read a little at a time', async (_, credential, status, chunks) => {
  await using server = await ServerProcess.start()
  const clients = await Promise.all(Array.from({ length: connections }, () => dial(server.port)))
  await server.ask('turns')
  server.signal('SIGSTOP')
  const head = `POST /shelf/keys/a HTTP/1.1\r\nHost: x\r\n${credential}Content-Length: ${bodyBytes}\r\n\r\n`
  const answered = clients.map((client) => {
    client.write(`${head}{"items":"${'x'.repeat(bodyBytes - 12)}"}`)
    return hearUntil(client, new RegExp(`^HTTP/1.1 ${status} `))
  })
  // As in a busy process: buffers of the system are full when it reads again.
  await delay(300)
  server.signal('SIGCONT')
  await Promise.all(answered)
  expect((await server.ask('measures')).mostOfTurn).toBeLessThan(mostBytes + connections * chunks * chunkBytes)
  for (const client of clients) client.destroy()
})

test('a connection rests once all together were read a mebibyte in this turn; eight go on with each later turn', async () => {
  const sockets = Array.from({ length: connections }, () => new Socket().resume())
  await turn()
  for (const socket of sockets) shareTurn(socket, chunkBytes, () => socket.resume())
  await Promise.resolve()
  const resting = (): number => sockets.filter((socket) => socket.isPaused()).length
  expect(sockets.slice(0, 15).some((socket) => socket.isPaused())).toBe(false)
  // Whatever else lets it go on, such as a body that was judged meanwhile.
  for (const socket of sockets) resume(socket)
  const counts = [resting()]
  while (resting() > 0) {
    await turn()
    counts.push(resting())
  }
  expect(counts).toEqual([9, 1, 0])
  await turn()
  for (const socket of sockets.slice(0, 15)) shareTurn(socket, chunkBytes, () => socket.resume())
  await Promise.resolve()
  expect(resting()).toBe(0)
})
