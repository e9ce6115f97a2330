import type { Socket } from 'node:net'

/** Of bodies, over all connections of this process. Reading them takes about a millisecond; one chunk is 64 KiB. */
const mostBytes = 2 ** 20
const mostResumed = 8

let bytesOfTurn = 0
let begins = false
const resting: (() => void)[] = []

/** Goes on reading, unless Node itself has paused the connection of a client that does not read its answers. */
export function resume(socket: Socket & { readonly _paused?: boolean }): void {
  if (socket._paused !== true) socket.resume()
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
  resting.push(goOn)
}

function beginTurn(): void {
  bytesOfTurn = 0
  for (const goOn of resting.splice(0, mostResumed)) goOn()
  begins = resting.length > 0
  if (begins) setImmediate(beginTurn)
}
