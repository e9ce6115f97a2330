import { type AddressInfo, createServer } from 'node:net'
import type { Config } from '../config.ts'

/** Ports for listeners configured with port 0, chosen once and kept over replaced workers, reloads and upgrades. */
export class Ports {
  readonly #chosen: Map<string, string>

  /** @param chosen by the supervisor from which this one takes over */
  constructor(chosen: readonly (readonly [configured: string, chosen: string])[] = []) {
    this.#chosen = new Map(chosen)
  }

  /** Of all listeners with port 0. */
  get chosen(): [configured: string, chosen: string][] {
    return [...this.#chosen]
  }

  /** The configuration with a number for every port 0. @throws Error when the host is not an address of this machine */
  async assign(config: Config): Promise<Config> {
    const listeners: Config['listeners'][number][] = []
    for (const one of config.listeners) {
      listeners.push(one.address.endsWith(':0') ? { ...one, address: await this.#choose(one.address) } : one)
    }
    return { ...config, listeners }
  }

  async #choose(address: string): Promise<string> {
    const known = this.#chosen.get(address)
    if (known !== undefined) return known
    const host = address.slice(0, -':0'.length)
    const chosen = `${host}:${await freePort(host.replace(/^\[|\]$/g, ''))}`
    this.#chosen.set(address, chosen)
    return chosen
  }
}

function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
