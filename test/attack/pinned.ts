import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { Agent, request } from 'node:http'

export interface Answer {
  readonly status: number
  readonly text: string
  /** The version that a ciphertext or signature in the answer names; 0 without one. */
  readonly version: number
}

/** A client with one connection, and so with one worker for as long as it is open. */
export interface Pinned extends Disposable {
  /** @param token another credential than the one it was opened with */
  ask(verb: string, path: string, body?: unknown, token?: string): Promise<Answer>
}

export function openPinned(base: string, credential: string): Pinned {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const { hostname, port } = new URL(base)
  return {
    ask: (verb, path, body, token = credential) =>
      new Promise((resolve, reject) => {
        const headers = { 'X-Vault-Token': token }
        const sent = request({ agent, hostname, port, method: verb, path: `/v1/${path}`, headers })
        sent.on('error', reject)
        sent.on('response', (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (part) => {
            text += part
          })
          response.on('error', reject)
          response.on('end', () => {
            const version = Number(/vault:v(\d+):/.exec(text)?.[1] ?? 0)
            resolve({ status: response.statusCode ?? 0, text, version })
          })
        })
        sent.end(body === undefined ? undefined : JSON.stringify(body))
      }),
    [Symbol.dispose]: () => agent.destroy(),
  }
}

/** How many connections to this address a process holds. */
export function connectionsOf(pid: number, base: string): number {
  const port = Number(new URL(base).port).toString(16).toUpperCase().padStart(4, '0')
  const established = '01'
  const inodes = new Set(
    readFileSync(`/proc/${pid}/net/tcp`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local, , state]) => local?.endsWith(`:${port}`) && state === established)
      .map((fields) => fields[9]),
  )
  return readdirSync(`/proc/${pid}/fd`).filter((name) => {
    try {
      return inodes.has(/^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1])
    } catch {
      return false
    }
  }).length
}
