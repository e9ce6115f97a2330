import type { ServerResponse } from 'node:http'
import { nextTurn } from '../after.ts'
import { type Pace, TakenPace, timeFor } from './pace.ts'

/** What a socket buffers anyway: of a larger piece a client would have to take much before it counts as taken. */
const leastPieceBytes = 64 * 1024
/** For a client that has taken all before at once. */
const mostPieceBytes = 512 * 1024

/**
 * Writes pieces as the body of an answer, no faster than the client reads, and asks for nothing more once the client
 * has gone or reads too slowly.
 * @returns whether the whole of it went out
 * @throws {Error} when there is no next piece; the answer has begun by then, so that its connection must be cut
 */
export async function sendPieces(
  response: ServerResponse,
  pieces: AsyncIterable<Uint8Array>,
  pace: Pace,
): Promise<boolean> {
  const taken = new TakenPace(pace)
  for await (const piece of pieces) if ((await sendPiece(response, piece, { pace, taken })) === 'never') return false
  response.end()
  return true
}

/** As sendPieces, of a body that is held. Never rejects. */
export async function sendHeld(response: ServerResponse, body: Uint8Array, pace: Pace): Promise<boolean> {
  const taken = new TakenPace(pace)
  let size = leastPieceBytes
  for (let at = 0; at < body.length; ) {
    const piece = body.subarray(at, at + size)
    at += piece.length
    const when = await sendPiece(response, piece, { pace, taken })
    if (when === 'never') return false
    size = when === 'at once' ? Math.min(mostPieceBytes, size * 2) : leastPieceBytes
  }
  response.end()
  return true
}

/** When a client has taken a piece, but for what its socket buffers. */
async function sendPiece(
  response: ServerResponse,
  piece: Uint8Array,
  { pace, taken }: { readonly pace: Pace; readonly taken: TakenPace },
): Promise<'at once' | 'later' | 'never'> {
  if (response.destroyed) return 'never'
  response.write(piece)
  // The system takes what it has room for at the end of this turn.
  await nextTurn()
  if (response.destroyed) return 'never'
  if (!response.writableNeedDrain) return taken.add(piece.length, 0) ? 'at once' : 'never'
  // Behind another answer this one is not the client's to take yet.
  const hasTurn = response.socket !== null
  const began = performance.now()
  const isTaken = await drained(response, timeFor(pace, response.writableLength))
  if (isTaken && taken.add(piece.length, hasTurn ? performance.now() - began : 0)) return 'later'
  response.req.socket.destroy()
  return 'never'
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
