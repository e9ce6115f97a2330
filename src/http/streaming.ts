import type { ServerResponse } from 'node:http'
import { nextTurn } from '../after.ts'
import type { Stream } from '../stream.ts'

/**
 * Writes a stream as the body of an answer, no faster than the client reads, and reads nothing more of it once the client
 * has gone or has taken nothing for so long.
 * @returns whether the whole of it went out
 * @throws {Error} when the stream fails; the answer has begun by then, so that its connection must be cut
 */
export async function sendStream(response: ServerResponse, stream: Stream, idleMilliseconds: number): Promise<boolean> {
  for await (const piece of stream.pieces()) {
    if (response.destroyed) return false
    if (!response.write(piece) && !(await drained(response, idleMilliseconds))) {
      response.req.socket.destroy()
      return false
    }
    await nextTurn()
  }
  response.end()
  return true
}

/** Resolves when there is room again, with false when there will be none. */
async function drained(response: ServerResponse, idleMilliseconds: number): Promise<boolean> {
  for (;;) {
    if (await settled(response, idleMilliseconds)) return !response.destroyed
    // Behind an answer to an earlier request of the same connection: its client does not keep this one waiting.
    if (response.socket !== null || response.req.socket.destroyed) return false
  }
}

/** Whether there is room, or the end of the connection, before the time is over. */
function settled(response: ServerResponse, milliseconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (happened: boolean) => () => {
      clearTimeout(timer)
      response.off('drain', room).off('close', room)
      resolve(happened)
    }
    const room = settle(true)
    const timer = setTimeout(settle(false), milliseconds)
    response.once('drain', room).once('close', room)
  })
}
