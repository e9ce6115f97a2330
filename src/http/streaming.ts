import type { ServerResponse } from 'node:http'
import { nextTurn } from '../after.ts'
import { type Pace, TakenPace, timeFor } from './pace.ts'

const [leastPieceBytes, mostPieceBytes] = [16 * 1024, 512 * 1024]

/**
 * A body that is held, in pieces for `sendPieces`: of no more bytes than the slowest client that is served takes before
 * it would count as idle, since a piece counts once the whole of it is taken.
 */
export function* piecesOf(
  body: Uint8Array,
  { idleMilliseconds, leastBytesPerSecond }: Pace,
): Generator<Uint8Array, void, undefined> {
  const slowest = Math.floor((idleMilliseconds / 1000) * leastBytesPerSecond)
  const size = Math.max(leastPieceBytes, Math.min(slowest, mostPieceBytes))
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size)
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
  for await (const piece of pieces) if (!(await sendPiece(response, piece, { pace, taken }))) return false
  response.end()
  return true
}

/** Whether the client has taken a piece, but for what its socket buffers. */
async function sendPiece(
  response: ServerResponse,
  piece: Uint8Array,
  { pace, taken }: { readonly pace: Pace; readonly taken: TakenPace },
): Promise<boolean> {
  if (response.destroyed) return false
  response.write(piece)
  // The system takes what it has room for at the end of this turn.
  await nextTurn()
  if (response.destroyed) return false
  if (!response.writableNeedDrain) return taken.add(piece.length, 0)
  // Behind another answer this one is not the client's to take yet.
  const hasTurn = response.socket !== null
  const began = performance.now()
  const isTaken = await drained(response, timeFor(pace, response.writableLength))
  if (isTaken && taken.add(piece.length, hasTurn ? performance.now() - began : 0)) return true
  response.req.socket.destroy()
  return false
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
