import { afterAll, beforeAll } from 'vitest'
import type { Client } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { openSql, type Sql } from './sql.ts'

/** A node, and access to its database as the owner has it. */
export interface Owned {
  readonly server: TestServer
  readonly sql: Sql
  readonly root: Client
}

/** Starts a node before the tests of a file, hands it to `begun`, and ends it after them. */
export function useOwned(begun: (owned: Owned) => void): void {
  let server: TestServer | undefined
  let sql: Sql | undefined
  beforeAll(async () => {
    server = await startServer()
    sql = await openSql(server.database.url)
    begun({ server, sql, root: server.client() })
  }, 120_000)
  afterAll(async () => {
    await sql?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
  })
}
