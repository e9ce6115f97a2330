import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { receive, shareTurn } from './turnshare.ts'

/** Requests that may wait behind the one that is being answered on their connection. */
const mostWaiting = 64
/** Of Node and of the answer under way, at an event of a connection. */
const usualListeners = 10
const refused = Number.POSITIVE_INFINITY

/** Of connections with requests that wait, or waited. */
const waiting = new WeakMap<Socket, number>()

/**
 * Decides on a request that may have come before the answer to the one in front of it (pipelining, RFC 9112 section
 * 9.3.2). So many may wait on a connection; the next one is refused, and what follows is neither served nor parsed.
 * @param idleMilliseconds after which the connection of a client that takes no answers is cut off
 */
export function admit(
  { socket }: IncomingMessage,
  response: ServerResponse,
  idleMilliseconds: number,
): 'serve' | 'refuse' | 'ignore' {
  // The connection is given to the answer whose turn it is.
  if (response.socket !== null) return 'serve'
  const count = waiting.get(socket) ?? 0
  if (count === refused) return 'ignore'
  if (count === mostWaiting) {
    waiting.set(socket, refused)
    discard(socket, idleMilliseconds)
    return 'refuse'
  }
  if (count === 0) {
    socket.setTimeout(idleMilliseconds)
    // Each answer that waits listens for the end of the connection; Node warns of more listeners than ten.
    socket.setMaxListeners(mostWaiting + usualListeners)
  }
  waiting.set(socket, count + 1)
  response.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1))
  return 'serve'
}

/**
 * Throws away, unparsed, what else comes on a connection. Pausing it would not do: Node resumes it with each answer
 * that it writes, and what is parsed then would fill memory.
 * @param milliseconds after which the connection is cut off
 */
export function discard(socket: Socket, milliseconds: number): void {
  socket.removeAllListeners('data')
  receive(socket, (piece) => shareTurn(socket, piece.length, () => socket.resume()))
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), milliseconds)
  socket.once('close', () => clearTimeout(timer))
}
