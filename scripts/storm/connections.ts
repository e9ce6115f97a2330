import { setTimeout as delay } from 'node:timers/promises'
import type { Attack, Sent, Target } from './target.ts'
import { dial, head } from './wire.ts'

const secondsUnread = 5

/** Sends so many bytes of requests on one connection, and reads none of the answers. */
async function unread(target: Target, path: string, totalBytes: number): Promise<Sent> {
  const { socket, send } = await dial(target)
  socket.pause()
  const request = head('GET', path)
  const requests = Math.ceil(totalBytes / request.length)
  await Promise.race([send(request.repeat(requests)), delay(secondsUnread * 1000)])
  await delay(secondsUnread * 1000)
  const closed = socket.destroyed
  socket.destroy()
  return { bytes: socket.bytesWritten, requests, answers: new Map([[closed ? 'closed' : 'unread', 1]]) }
}

export const connections: readonly Attack[] = [
  {
    title: '4.6 MB of pipelined requests for OpenAPI, unread',
    run: (target) => unread(target, 'sys/internal/specs/openapi', 4_600_000),
  },
  {
    title: '4.6 MB of pipelined requests for a list, unread',
    run: (target) => unread(target, 'pki/crl/pem', 4_600_000),
  },
  { title: '4.6 MB of pipelined sys/health, unread', run: (target) => unread(target, 'sys/health', 4_600_000) },
]
