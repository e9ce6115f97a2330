import type { Socket } from 'node:net'

/** Of bodies, over all connections of this process. Reading them takes about a millisecond; one chunk is 64 KiB. */
const mostBytes = 2 ** 20
const mostResumed = 8

let bytesOfTurn = 0
let begins = false
const resting = new Map<Socket, () => void>()

/**
 * Listens to the data of an HTTP connection. Node then takes away its listeners that stop reading at once when the
 * connection is paused (without them a chunk more is read); here it keeps them.
 */
export function receive(socket: Socket, take: (chunk: Buffer) => void): void {
  const kept = (['pause', 'resume'] as const).map((event) => ({ event, listeners: socket.rawListeners(event) }))
  socket.on('data', take)
  for (const { event, listeners } of kept) {
    socket.removeAllListeners(event)
    for (const listener of listeners) socket.on(event, listener as () => void)
  }
}

/**
 * Goes on reading, unless the connection rests for others, or Node itself has paused it because its client does not
 * read its answers.
 */
export function resume(socket: Socket & { readonly _paused?: boolean }): void {
  if (socket._paused !== true && !resting.has(socket)) socket.resume()
}

/**
 * Counts what was read of a body in this turn of the event loop, and lets the connection rest when it is too much:
 * libuv would read 2 MiB from each connection before it turned to new connections and short requests.
 * @param goOn called in a later turn, if the connection was paused
 */
export function shareTurn(socket: Socket, bytes: number, goOn: () => void): void {
  if (!begins) setImmediate(beginTurn)
  begins = true
  bytesOfTurn += bytes
  if (bytesOfTurn < mostBytes) return
  resting.set(socket, goOn)
  // After the ticks of this chunk: in one of them `IncomingMessage._read` resumes its socket.
  queueMicrotask(() => resting.has(socket) && socket.pause())
}

function beginTurn(): void {
  bytesOfTurn = 0
  for (const [socket, goOn] of [...resting].slice(0, mostResumed)) {
    resting.delete(socket)
    goOn()
  }
  begins = resting.size > 0
  if (begins) setImmediate(beginTurn)
}
