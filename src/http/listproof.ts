import { connect } from 'node:net'
import { acceptListVerb } from './listverb.ts'
import { createServer } from './nodehttp.ts'

/** One packet and then the second, cut inside a verb: LIST among others, and the words of it inside a body. */
const sent = [
  'LIST /a HTTP/1.1\r\nHost: x\r\n\r\nLINK /b HTTP/1.1\r\nHost: x\r\n\r\nLI',
  'ST /c HTTP/1.1\r\nHost: x\r\n\r\nPOST /d HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\nLIST /e HTTP/1.1\rLIST /f HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
]
const expected = 'LIST /a, LINK /b, LIST /c, POST /d, LIST /f'

/**
 * Sends LIST through a loopback connection before anything is served: it leans on Node's inside, and after an upgrade
 * of Node the way may have changed.
 * @throws {Error} when the requests that arrive are not those that were sent
 */
export async function proveListVerb(): Promise<void> {
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`)
    request.resume()
    response.end()
  })
  acceptListVerb(server)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host: '127.0.0.1', port: 0 }, resolve)
  })
  try {
    await exchange(server.address() as { port: number })
  } finally {
    server.close()
    server.closeAllConnections()
  }
  if (seen.join(', ') !== expected) {
    throw new Error(`this Node (${process.version}) does not take the method LIST: got ${seen.join(', ') || 'nothing'}`)
  }
}

function exchange({ port }: { port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(sent[0] ?? ''))
    socket.setNoDelay(true)
    socket.once('data', () => socket.write(sent[1] ?? ''))
    socket.setTimeout(5000, () => socket.destroy(new Error('the LIST self-test got no answer')))
    socket
      .on('data', () => undefined)
      .on('error', reject)
      .on('close', () => resolve())
  })
}
