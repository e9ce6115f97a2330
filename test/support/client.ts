import { request } from 'node:http'
import { checkAnswer, type Exchange } from './answers.ts'

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** The body as JSON; undefined when it is not JSON. */
  readonly body: unknown
  /** The string at `path` (dots between names) in the body. */
  string(path: string): string
}

/**
 * A client like curl: any verb, a body of JSON or bytes, X-Vault-Token. Each call is a connection of its own. A success
 * that its route does not declare is an error.
 */
export interface Client {
  call(verb: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply>
  get(path: string): Promise<Reply>
  list(path: string): Promise<Reply>
  post(path: string, body?: unknown): Promise<Reply>
  delete(path: string): Promise<Reply>
}

/** @param base the server's URL, asked at each call, since a restarted server may have another */
export function createClient(base: () => string, token: string): Client {
  const call: Client['call'] = (verb, path, body, headers = {}) =>
    new Promise((resolve, reject) => {
      const isReady = body === undefined || typeof body === 'string' || body instanceof Uint8Array
      const { hostname, port } = new URL(base())
      const sent = request({
        hostname,
        port,
        // LIST is unknown to Node's client too: it is sent the way the Go clients send it.
        method: verb === 'LIST' ? 'GET' : verb,
        path: `/v1/${path}${verb === 'LIST' ? `${path.includes('?') ? '&' : '?'}list=true` : ''}`,
        headers: { ...(token === '' ? {} : { 'X-Vault-Token': token }), ...headers },
        agent: false,
      })
      sent.on('error', reject)
      sent.on('response', (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(parts).toString()
          const { statusCode: status = 0, headers } = response
          const reply = {
            status,
            headers,
            text,
            body: parsed(text),
            string: (at: string) => stringAt(parsed(text), at),
          }
          checked({ ...reply, verb, path, sent: body, contentType: headers['content-type'] ?? '' }).then(
            () => resolve(reply),
            reject,
          )
        })
      })
      sent.end(isReady ? body : JSON.stringify(body))
    })
  return {
    call,
    get: (path) => call('GET', path),
    list: (path) => call('LIST', path),
    post: (path, body = {}) => call('POST', path, body),
    delete: (path) => call('DELETE', path),
  }
}

/** Checks every success against the declaration of its route. */
async function checked(exchange: Exchange): Promise<void> {
  if (exchange.status >= 200 && exchange.status < 300) await checkAnswer(exchange)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function stringAt(body: unknown, path: string): string {
  const value = path.split('.').reduce<unknown>((node, name) => (node as Record<string, unknown>)?.[name], body)
  if (typeof value !== 'string') throw new Error(`no string at ${path}: ${JSON.stringify(body)}`)
  return value
}
