import { Pool } from 'undici'

/** A server of the Vault API, called as root. */
export interface Api {
  /** @param path below /v1 @returns the answer's text @throws Error unless it is a success */
  send(method: string, path: string, body?: object): Promise<string>
  /** As send. @returns the answer, or an empty object for one without a body */
  call(method: string, path: string, body?: object): Promise<Record<string, unknown>>
}

/**
 * Calls over connections that are kept. It shares the cores with the server that is measured: with sixteen clients
 * node:http costs more than twice as much, and fetch even more.
 */
export class ApiClient implements Api, AsyncDisposable {
  readonly #token: string
  readonly #pool: Pool

  /** @param token root's; '' for none */
  constructor(url: string, token: string) {
    this.#token = token
    this.#pool = new Pool(url)
  }

  async send(method: string, path: string, body?: object): Promise<string> {
    const sent = { method, path: `/v1/${path}`, headers: { 'x-vault-token': this.#token } }
    const answer = await this.#pool.request(body === undefined ? sent : { ...sent, body: JSON.stringify(body) })
    const text = await answer.body.text()
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`)
    return text
  }

  async call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const text = await this.send(method, path, body)
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy()
  }
}
