import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runDirectory } from '../support/directory.ts'
import { fullPipe } from '../support/fullpipe.ts'
import { alive, fetchAlone, TestNode, until } from './node.ts'

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const bound = server.address()
      server.close(() => resolve(typeof bound === 'object' ? (bound?.port ?? 0) : 0))
    })
  })

/** A unix socket whose other end reads nothing and has no room left. */
async function fullSocket(): Promise<Socket> {
  const path = join(mkdtempSync(join(runDirectory(), 'socket-')), 'socket')
  const server = createServer({ pauseOnConnect: true }).listen(path)
  await once(server, 'listening')
  const socket = connect(path)
  await once(socket, 'connect')
  while (socket.writableLength === 0) socket.write(Buffer.alloc(65_536, '\n'))
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  return socket
}

test.each(['pipe', 'socket'])(
  'a node whose output and log are a %s that nobody reads serves, replaces workers, takes an upgrade and ends',
  async (kind) => {
    using pipe = fullPipe()
    const streams = kind === 'pipe' ? pipe.descriptor : await fullSocket()
    const address = `127.0.0.1:${await freePort()}`
    await using node = new TestNode({ listeners: `[{ address: '${address}' }]`, streams })
    const ask = async (path: string) => JSON.parse((await fetchAlone(`http://${address}${path}`)).text).pid
    await until('it serves', () => ask('/').then(Boolean, () => false))
    // More bytes than may wait for a reader.
    for (let each = 0; each < 20; each++) await ask('/print')
    const [first = 0] = node.starts
    process.kill(first, 'SIGKILL')
    await until('another worker serves', () =>
      ask('/').then(
        (pid) => pid !== first,
        () => false,
      ),
    )
    node.process.kill('SIGUSR2')
    await until('the new program serves', () =>
      ask('/').then(
        (pid) => pid === node.starts[2],
        () => false,
      ),
    )
    await until('the old worker has ended', () => !alive(node.starts[1] ?? 0))
    node.process.kill('SIGTERM')
    expect(await node.ended).toBe(0)
    expect(node.starts.filter(alive)).toEqual([])
  },
)
