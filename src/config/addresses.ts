import { BlockList, isIP } from 'node:net'

/** Stands for the connections of a unix socket, which have no address. */
const unix = 'unix'

/** A set of addresses: IP addresses, CIDR blocks, and `unix` for the connections of a unix socket. */
export class Addresses {
  readonly #blocks = new BlockList()
  readonly #unix: boolean

  /** @throws RangeError naming an entry that cannot be read */
  constructor(entries: readonly string[]) {
    this.#unix = entries.includes(unix)
    for (const entry of entries) if (entry !== unix) this.#add(entry)
  }

  /** @param address of a connection; undefined or empty on a unix socket */
  has(address: string | undefined): boolean {
    if (!address) return this.#unix
    return this.#blocks.check(address, familyOf(address))
  }

  #add(entry: string): void {
    const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? []
    const longest = isIP(address) === 6 ? 128 : 32
    if (isIP(address) === 0 || Number(bits ?? 0) > longest) {
      throw new RangeError(`${entry} is not an IP address, CIDR block or "unix"`)
    }
    this.#blocks.addSubnet(address, Number(bits ?? longest), familyOf(address))
  }
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')
