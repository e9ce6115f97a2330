import { connect, createServer, type Socket } from 'node:net'
import { parseTargets } from '../../src/store/target.ts'

/** A line to the database on which the answers to some questions can be held back. */
export interface Hold extends AsyncDisposable {
  /** The database's URL through this line. */
  readonly url: string
  /** From now on, connections that ever asked something with this text in it get no answer; resolves when one waits. */
  hold(text: string): Promise<void>
  /** Gives all answers that were held back. */
  release(): void
}

export async function openHold(url: string): Promise<Hold> {
  const [target] = parseTargets(url)
  if (target === undefined) throw new Error('no target')
  const sockets = new Set<Socket>()
  let held: { text: string; answers: (() => void)[]; waiting: () => void } | undefined

  const server = createServer((client) => {
    const upstream = target.socketPath ? connect(target.socketPath) : connect(target.port, target.host)
    let asked = ''
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (bytes) => {
      asked += bytes.toString('latin1')
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      if (held === undefined || !asked.includes(held.text)) return void client.write(bytes)
      held.answers.push(() => client.write(bytes))
      held.waiting()
    })
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  const through = new URL(url)
  through.searchParams.delete('socketPath')
  through.hostname = '127.0.0.1'
  through.port = String(address.port)

  return {
    url: through.href,
    hold(text) {
      return new Promise((resolve) => {
        held = { text, answers: [], waiting: resolve }
      })
    },
    release() {
      const answers = held?.answers ?? []
      held = undefined
      for (const answer of answers) answer()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
