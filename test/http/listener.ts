import { type AddressInfo, createServer } from 'node:net'
import { createListener, type ListenerContext, type ListenerOptions, type Serving } from '../../src/http/listeners.ts'

/** A listener with a socket of its own, which gives it the connections as the supervisor does. */
export interface Listener extends Serving {
  /** `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`, with the port that was bound. */
  readonly address: string
}

/** Opens a listener at its address. */
export async function openListener(options: ListenerOptions, context: ListenerContext): Promise<Listener> {
  const serving = await createListener(options, context)
  const acceptor = createServer({ noDelay: true }, (connection) => serving.accept(connection))
  const [, host, port] = /^(.*):(\d+)$/.exec(options.address) ?? []
  const path = options.address.replace(/^unix:/, '')
  await new Promise<void>((resolve, reject) => {
    const where = port === undefined ? { path } : { host: host?.replace(/^\[|\]$/g, ''), port: Number(port) }
    acceptor.once('error', reject).listen(where, resolve)
  })
  const bound = acceptor.address() as AddressInfo | string
  const scheme = options.tls ? 'https' : 'http'
  return {
    accept: (connection) => serving.accept(connection),
    close(deadlineMilliseconds, keepAliveMilliseconds) {
      acceptor.close()
      return serving.close(deadlineMilliseconds, keepAliveMilliseconds)
    },
    address: typeof bound === 'string' ? `unix:${bound}` : `${scheme}://${host}:${bound.port}`,
  }
}
