import type { Socket } from 'node:net'

/** Of bodies, over all connections of this process. Reading them takes about a millisecond; one chunk is 64 KiB. */
const mostBytes = 2 ** 20
const mostResumed = 8

let bytesOfTurn = 0
let begins = false
const resting = new Map<Socket, () => void>()

/**
 * Goes on reading, unless the connection rests for others, or Node itself has paused it because its client does not read
 * its answers.
 */
export function resume(socket: Socket & { readonly _paused?: boolean }): void {
  if (socket._paused !== true && !resting.has(socket)) socket.resume()
}

/**
 * Counts what was read of a body in this turn of the event loop, and lets the connection rest when it is too much: libuv
 * would read 2 MiB from each connection before it turned to new connections and short requests.
 * @param goOn called in a later turn, if the connection was paused
 */
export function shareTurn(socket: Socket, bytes: number, goOn: () => void): void {
  if (!begins) setImmediate(beginTurn)
  begins = true
  bytesOfTurn += bytes
  if (bytesOfTurn < mostBytes || socket.isPaused()) return
  socket.pause()
  resting.set(socket, goOn)
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
