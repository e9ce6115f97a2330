import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** The connections of a server that listens nowhere. */
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

  /** Serves a connection that another process has accepted. */
  inject(socket: Socket): void {
    // As an HTTP server does with those that it accepts itself.
    socket.allowHalfOpen = true
    this.#server.emit('connection', socket)
  }

  /**
   * Resolves when every connection is closed: idle ones after `keepAliveMilliseconds`, those with a request under way
   * at its end, every other at the deadline.
   */
  close(deadlineMilliseconds: number, keepAliveMilliseconds: number): Promise<void> {
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
