import { compileRoutes, type Dispatch } from '../../src/request/dispatch.ts'
import type { Method, Routes } from '../../src/route.ts'
import type { Client, Reply } from './client.ts'

/** Notes which routes were called: `transit: POST encrypt/:name`. */
export class Walked {
  readonly routes = new Set<string>()
  readonly #mounts: readonly (readonly [string, Dispatch])[]
  readonly #all: readonly string[]

  /** @param tables routes by the path of their mount, without slash */
  constructor(tables: Readonly<Record<string, Routes<unknown>>>) {
    this.#mounts = Object.entries(tables).map(([mount, routes]) => [mount, compileRoutes(routes)])
    this.#all = Object.entries(tables).flatMap(([mount, routes]) =>
      routes.map(({ method, path }) => `${mount}: ${method} ${path}`),
    )
  }

  note(method: Method, path: string): void {
    for (const [mount, dispatch] of this.#mounts) {
      if (!path.startsWith(`${mount}/`)) continue
      const { route } = dispatch(method, path.slice(mount.length + 1).replace(/\?.*/, '')).endpoint
      this.routes.add(`${mount}: ${route.method} ${route.path}`)
    }
  }

  /** The routes that were not called. */
  get left(): readonly string[] {
    return this.#all.filter((route) => !this.routes.has(route))
  }

  /** The client, with its calls noted. */
  noting({ call }: Client): Client {
    const noted = (method: Method, path: string, body?: unknown): Promise<Reply> => {
      this.note(method, path)
      return call(method, path, body)
    }
    return {
      call,
      get: (path) => noted('GET', path),
      list: (path) => noted('LIST', path),
      post: (path, body = {}) => noted('POST', path, body),
      delete: (path) => noted('DELETE', path),
    }
  }
}
