import { linkSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import { hostAndPort } from '../config/hostport.ts'
import { lineDescriptor } from './upgrade/line.ts'

/** A listening socket that another process has opened. */
export interface Inherited {
  readonly descriptor: number
  /** Whether the file of a unix socket is removed at the node's end: not where systemd made it. */
  readonly owned: boolean
}

const firstDescriptor = 3

/**
 * Descriptors of this process from 3 on that its workers must not inherit: those up to the last listening socket.
 * @param successor whether descriptor 4 is the line of an upgrade
 */
export function hiddenDescriptors(inherited: ReadonlyMap<string, Inherited> = new Map(), successor = false): number {
  const descriptors = [...inherited.values()].map(({ descriptor }) => descriptor)
  return Math.max(successor ? lineDescriptor : 0, firstDescriptor - 1, ...descriptors) - firstDescriptor + 1
}

/** One listening socket, whose connections are not read here. */
export class ListeningSocket {
  readonly owned: boolean
  /** Whether another process opened it. */
  readonly inherited: boolean
  readonly #server: Server
  readonly #path: string | undefined

  private constructor(server: Server, path: string | undefined, inherited: Inherited | undefined) {
    this.#server = server
    this.#path = path
    this.owned = inherited?.owned ?? true
    this.inherited = inherited !== undefined
  }

  /**
   * Listens at an address, or on the socket that was inherited for it.
   * @param address `host:port`, `[IPv6]:port` or `unix:/PATH`
   * @throws Error when the address is taken, or the inherited socket does not fit it
   */
  static async open(
    address: string,
    inherited: Inherited | undefined,
    onConnection: (connection: Socket) => void,
  ): Promise<ListeningSocket> {
    const server = createServer({ pauseOnConnect: true, noDelay: true }, onConnection)
    const path = address.startsWith('unix:') ? address.slice('unix:'.length) : undefined
    const opened = new ListeningSocket(server, path, inherited)
    if (inherited) await opened.#inherit(address, inherited.descriptor)
    else if (path === undefined) await listen(server, hostAndPort(address))
    else await opened.#bind(path)
    return opened
  }

  /** `HOST:PORT` or `unix:/PATH`, as bound. */
  get bound(): string {
    const bound = this.#server.address()
    if (this.#path !== undefined || bound === null || typeof bound === 'string') return `unix:${this.#path ?? bound}`
    return `${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`
  }

  /** The address as clients write it. */
  shown(secure: boolean): string {
    return this.#path === undefined ? `${secure ? 'https' : 'http'}://${this.bound}` : this.bound
  }

  /** For a process that inherits it. @throws Error if Node has no descriptor for it */
  get descriptor(): number {
    // The documented ways to pass a server on all make the receiver accept at once.
    const { _handle: handle } = this.#server as Server & { _handle?: { readonly fd?: number } | null }
    if (handle?.fd === undefined || handle.fd < 0) throw new Error(`${this.bound} has no descriptor to be inherited`)
    return handle.fd
  }

  close(removed: boolean): void {
    this.#server.close()
    if (removed && this.owned && this.#path !== undefined) rmSync(this.#path, { force: true })
  }

  /** Bound under another name, because closing removes the name that was bound: a successor needs this one. */
  async #bind(path: string): Promise<void> {
    const temporary = `${path}.${process.pid}`
    await listen(this.#server, { path: temporary })
    try {
      linkSync(temporary, path)
    } catch (error) {
      this.#server.close()
      const taken = (error as NodeJS.ErrnoException).code === 'EEXIST'
      throw taken ? new Error(`listen EADDRINUSE: address already in use ${path}`, { cause: error }) : error
    } finally {
      rmSync(temporary, { force: true })
    }
  }

  async #inherit(address: string, descriptor: number): Promise<void> {
    try {
      await listen(this.#server, { fd: descriptor })
    } catch (cause) {
      throw new Error(`listener ${address}: descriptor ${descriptor} is no listening socket`, { cause })
    }
    const bound = this.#server.address()
    const port = typeof bound === 'object' ? bound?.port : undefined
    const name = port === undefined ? pathOf(descriptor) : undefined
    const fits =
      this.#path === undefined ? port === hostAndPort(address).port : port === undefined && isName(name, this.#path)
    if (fits) return
    this.#server.close()
    throw new Error(`listener ${address}: the socket that was handed over is bound to ${port ?? name}`)
  }
}

/** Whether a unix socket may be at this path: bound there, or by us (#bind), or at an unknown path. */
const isName = (bound: string | undefined, path: string): boolean =>
  bound === undefined || bound === path || (bound.startsWith(path) && /^\.\d+$/.test(bound.slice(path.length)))

/** The path to which a unix socket was bound, which Node does not tell; undefined outside its network namespace. */
function pathOf(descriptor: number): string | undefined {
  const [inode] = /\d+/.exec(readlinkSync(`/proc/self/fd/${descriptor}`)) ?? []
  const line = new RegExp(`^(?:\\S+ +){6}${inode} (.*)$`, 'm')
  return line.exec(readFileSync('/proc/net/unix', 'utf8'))?.[1]
}

function listen(server: Server, where: ListenOptions & { fd?: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.off('error', reject)
      // Too many open files, say: only the client whose connection was not accepted is affected.
      server.on('error', () => {})
      resolve()
    })
  })
}
