import { Agent, request } from 'node:http'

/** A server of the Vault API, called as root. */
export interface Api {
  /** @param path below /v1 @throws Error unless the answer is a success */
  call(method: string, path: string, body?: object): Promise<Record<string, unknown>>
}

/** Calls over connections that are kept; by node:http: fetch would cost more than the operation that is measured. */
export class ApiClient implements Api, Disposable {
  readonly #url: string
  readonly #token: string
  readonly #agent = new Agent({ keepAlive: true })

  /** @param token root's; '' for none */
  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  async call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const { status, text } = await this.#send(method, path, body === undefined ? '' : JSON.stringify(body))
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }

  #send(method: string, path: string, body: string): Promise<{ status: number; text: string }> {
    const headers = { 'X-Vault-Token': this.#token, 'Content-Length': Buffer.byteLength(body) }
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
    const sent = request(`${this.#url}/v1/${path}`, { method, headers, agent: this.#agent }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
    return promise
  }
}
