import { connect, type Socket } from 'node:net'
import type { Sent, Target } from './target.ts'

/** One connection of an attacker. */
export interface Connection {
  readonly socket: Socket
  /** Writes, and waits until the kernel has it or the connection is gone. */
  send(bytes: string | Uint8Array): Promise<void>
  /** The next answer's status line number, or `closed`. */
  answer(): Promise<string>
}

export function dial({ url }: Target): Promise<Connection> {
  const { port, hostname } = new URL(url)
  const socket = connect(Number(port), hostname)
  let heard = ''
  let wake = (): void => undefined
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString('latin1', 0, 4096)
    wake()
  })
  socket.on('close', () => wake())
  const answer = async (): Promise<string> => {
    for (;;) {
      const status = /HTTP\/1\.1 (\d{3}) /.exec(heard)
      if (status) {
        heard = heard.slice(status.index + status[0].length)
        return status[1] ?? ''
      }
      if (socket.closed) return 'closed'
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  const send = (bytes: string | Uint8Array): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        socket.off('close', done)
        resolve()
      }
      socket.once('close', done)
      socket.write(bytes, done)
    })
  return new Promise((resolve, reject) => {
    socket.once('error', reject).once('connect', () => {
      socket.off('error', reject).on('error', () => undefined)
      resolve({ socket, send, answer })
    })
  })
}

export const head = (method: string, path: string, fields: Readonly<Record<string, string | number>> = {}): string =>
  `${method} /v1/${path} HTTP/1.1\r\nHost: storm\r\n${Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

/** A connection for one request. @param token none when empty */
export async function post(target: Target, path: string, body: string | Uint8Array, token = ''): Promise<Sent> {
  const connection = await dial(target)
  const length = Buffer.byteLength(body)
  const text = head('POST', path, { ...credential(token), 'Content-Length': length, Connection: 'close' })
  await connection.send(text)
  await connection.send(body)
  const status = await connection.answer()
  connection.socket.destroy()
  return { bytes: text.length + length, requests: 1, answers: new Map([[status, 1]]) }
}

export const credential = (token: string): Record<string, string> => (token === '' ? {} : { 'X-Vault-Token': token })

/** How often each status came. */
export function counted(statuses: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return counts
}
