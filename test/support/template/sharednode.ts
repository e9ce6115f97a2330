import { createServer } from 'node:net'
import { join } from 'node:path'
import { runDirectory } from '../directory.ts'
import { startServer, type TestServer } from '../server.ts'

/** A node as its users see it. */
export interface SharedNode {
  readonly url: string
  readonly rootToken: string
}

/** The socket at which the files of a run ask for the node that they share. */
export const sharedNodeSocket = (): string => join(runDirectory(), 'node.sock')

/**
 * Starts a node when a file first asks for it, in the process that lives as long as the run. Each connection to the
 * socket is answered with the node as JSON.
 * @returns ends the node
 */
export async function offerSharedNode(): Promise<() => Promise<void>> {
  let starting: Promise<TestServer> | undefined
  const offer = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    // Two workers: what one has changed, another one is asked for.
    starting ??= startServer({ workers: 2 })
    starting.then(
      ({ url, rootToken }) => socket.end(JSON.stringify({ url, rootToken } satisfies SharedNode)),
      (error: unknown) => socket.end(JSON.stringify({ failed: String(error) })),
    )
  })
  await new Promise<void>((resolve) => offer.listen(sharedNodeSocket(), resolve))
  return async () => {
    offer.close()
    await (await starting?.catch(() => undefined))?.[Symbol.asyncDispose]()
  }
}
