import { type AddressInfo, createServer } from 'node:net'
import type { Config } from '../config.ts'

/**
 * Ports for listeners that are configured with port 0, chosen once: they stay the same over replaced workers and reloads,
 * and node:cluster shares one socket among workers only by its number.
 */
export class Ports {
  readonly #chosen = new Map<string, string>()

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
