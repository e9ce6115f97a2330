import type { ServerResponse } from 'node:http'
import { nextTurn } from '../after.ts'
import { type Pace, TakenPace, timeFor } from './pace.ts'

/** What a socket buffers anyway: of a larger piece a client would have to take much before it counts as taken. */
const pieceBytes = 64 * 1024

/** A body that is held, in pieces for `sendPieces`. */
export function* piecesOf(body: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes)
}

/**
 * Writes pieces as the body of an answer, no faster than the client reads, and asks for nothing more once the client
 * has gone or reads too slowly.
 * @returns whether the whole of it went out
 * @throws {Error} when there is no next piece; the answer has begun by then, so that its connection must be cut
 */
export async function sendPieces(
  response: ServerResponse,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  pace: Pace,
): Promise<boolean> {
  const taken = new TakenPace(pace)
  let writtenBytes = 0
  for await (const piece of pieces) {
    if (response.destroyed) return false
    writtenBytes += piece.length
    if (!response.write(piece)) {
      // Behind another answer this one is not the client's to take yet.
      const hasTurn = response.socket !== null
      const began = performance.now()
      const isTaken = await drained(response, timeFor(pace, response.writableLength))
      if (!isTaken || !taken.add(writtenBytes, hasTurn ? performance.now() - began : 0)) {
        response.req.socket.destroy()
        return false
      }
      writtenBytes = 0
    }
    await nextTurn()
  }
  response.end()
  return true
}

/** Resolves when there is room again, with false when there will be none. */
async function drained(response: ServerResponse, milliseconds: number): Promise<boolean> {
  for (;;) {
    if (await settled(response, milliseconds)) return !response.destroyed
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
