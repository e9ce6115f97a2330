import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'

/** The connections of a server: those it has accepted itself, and those that another process has. */
export class Connections {
  readonly #server: Server
  readonly #open = new Set<Socket>()
  #onNone: (() => void) | undefined

  constructor(server: Server) {
    this.#server = server
    server.prependListener('connection', (socket: Socket) => {
      this.#open.add(socket)
      socket.once('close', () => {
        this.#open.delete(socket)
        if (this.#open.size === 0) this.#onNone?.()
      })
    })
  }

  get count(): number {
    return this.#open.size
  }

  /** Serves a connection that another process has accepted, as if this one had. */
  inject(socket: Socket): void {
    // As an HTTP server has those that it accepts itself.
    socket.allowHalfOpen = true
    this.#server.emit('connection', socket)
  }

  /**
   * Resolves when every connection is closed: idle ones after `keepAliveMilliseconds`, those with a request under way
   * at its end, every other at the deadline.
   */
  close(deadlineMilliseconds: number, keepAliveMilliseconds: number): Promise<void> {
    // Not the HTTP server's own close, which closes idle connections at once.
    if (this.#server.listening) NetServer.prototype.close.call(this.#server)
    const none = Promise.withResolvers<void>()
    this.#onNone = none.resolve
    if (this.#open.size === 0) none.resolve()
    const idle = setTimeout(() => this.#server.closeIdleConnections(), keepAliveMilliseconds)
    const deadline = setTimeout(() => {
      this.#server.closeAllConnections()
      for (const socket of this.#open) socket.destroy()
    }, deadlineMilliseconds)
    return none.promise.finally(() => {
      clearTimeout(idle)
      clearTimeout(deadline)
    })
  }
}
