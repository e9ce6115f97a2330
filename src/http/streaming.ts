import type { ServerResponse } from 'node:http'
import { nextTurn } from '../after.ts'
import { type Pace, TakenPace, timeFor } from './pace.ts'

/** Of a body that is held: most lists are one piece, and each piece is a turn of the event loop. */
const heldPieceBytes = 512 * 1024

/**
 * Writes a body that is held, no faster than the client reads.
 * @returns whether the whole of it is with the system, or waits for the client as the end of the answer
 */
export async function sendHeld(response: ServerResponse, body: Uint8Array, pace: Pace): Promise<boolean> {
  const taken = new TakenPace(pace)
  let at = 0
  for (; body.length - at > heldPieceBytes; at += heldPieceBytes) {
    const piece = body.subarray(at, at + heldPieceBytes)
    if (!(await sendPiece(response, piece, { pace, taken }))) return false
  }
  response.end(body.subarray(at))
  return true
}

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
  for await (const piece of pieces) if (!(await sendPiece(response, piece, { pace, taken }))) return false
  response.end()
  return true
}

/** Whether the client has taken a piece, apart from the bytes that its socket buffers. */
async function sendPiece(
  response: ServerResponse,
  piece: Uint8Array,
  { pace, taken }: { readonly pace: Pace; readonly taken: TakenPace },
): Promise<boolean> {
  if (response.destroyed) return false
  response.write(piece)
  // The system takes as much as it has room for at the end of this turn.
  await nextTurn()
  if (response.destroyed) return false
  if (!response.writableNeedDrain) return taken.add(piece.length, 0)
  // Behind another answer this one is not the client's to take yet.
  const hasTurn = response.socket !== null
  cutIdle(response, pace)
  const began = performance.now()
  const isTaken = await drained(response, timeFor(pace, response.writableLength))
  if (isTaken && taken.add(piece.length, hasTurn ? performance.now() - began : 0)) return true
  response.req.socket.destroy()
  return false
}

/**
 * Ends the connection once its client has neither taken nor sent a byte for so long. Node restarts this timer whenever
 * the system takes a part of a piece, so a slow client is not cut off in the middle of one.
 */
export function cutIdle(response: ServerResponse, { idleMilliseconds }: Pace): void {
  response.setTimeout(idleMilliseconds)
}

/** Resolves with true when there is room again, with false when the connection has ended. */
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
