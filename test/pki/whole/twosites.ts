import { afterAll, beforeAll } from 'vitest'
import { startServer, type TestServer } from '../../support/server.ts'
import type { Answer } from '../api/authority.ts'
import { createCa, type WholeCa } from './ca.ts'

/** Two sites of two nodes each: four supervisors with a worker each, one database. */
export interface TwoSites {
  readonly north: readonly TestServer[]
  readonly south: readonly TestServer[]
  /** The nodes of both sites. */
  readonly all: readonly TestServer[]
  /** Makes a CA in a mount of its own. @param settings of config/crl */
  createCa(settings?: Answer): Promise<WholeCa>
}

/** Starts them before the tests of a file and ends them after them. */
export function useTwoSites(): TwoSites {
  const stack = new AsyncDisposableStack()
  const north: TestServer[] = []
  const south: TestServer[] = []
  beforeAll(async () => {
    const start = async (site: string, joins?: TestServer): Promise<TestServer> =>
      stack.use(await startServer({ workers: 1, config: { site }, ...(joins && { joins }) }))
    const one = await start('north')
    north.push(one, await start('north', one))
    south.push(await start('south', one), await start('south', one))
  }, 120_000)
  afterAll(() => stack.disposeAsync())
  return {
    north,
    south,
    get all() {
      return [...north, ...south]
    },
    createCa: (settings) => createCa(north[0] as TestServer, settings),
  }
}
