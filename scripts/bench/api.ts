import { Client, Pool } from 'undici'

/** A server of the Vault API, called as root. */
export interface Api {
  /**
   * @param path below /v1
   * @param client whose connection it goes over, counted from 0; any one if absent
   * @returns the answer's text
   * @throws Error unless it is a success
   */
  send(method: string, path: string, body?: object, client?: number): Promise<string>
  /** As send. @returns the answer, or an empty object for one without a body */
  call(method: string, path: string, body?: object, client?: number): Promise<Record<string, unknown>>
}

/**
 * Calls over connections that are kept. A client that has a connection of its own stays with one of several workers. All
 * this shares the cores with the server that is measured: with sixteen clients node:http costs more than twice as much,
 * and fetch even more.
 */
export class ApiClient implements Api, AsyncDisposable {
  readonly #url: string
  readonly #token: string
  readonly #pool: Pool
  readonly #own = new Map<number, Client>()

  /** @param token root's; '' for none */
  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
    this.#pool = new Pool(url)
  }

  async send(method: string, path: string, body?: object, client?: number): Promise<string> {
    const sent = { method, path: `/v1/${path}`, headers: { 'x-vault-token': this.#token } }
    const connection = client === undefined ? this.#pool : this.#connectionOf(client)
    const answer = await connection.request(body === undefined ? sent : { ...sent, body: JSON.stringify(body) })
    const text = await answer.body.text()
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`)
    return text
  }

  async call(method: string, path: string, body?: object, client?: number): Promise<Record<string, unknown>> {
    const text = await this.send(method, path, body, client)
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
  }

  #connectionOf(client: number): Client {
    const own = this.#own.get(client) ?? new Client(this.#url)
    this.#own.set(client, own)
    return own
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#pool, ...this.#own.values()].map((connections) => connections.destroy()))
  }
}
