import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { done } from '../api/node.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
}, 120_000)
afterAll(() => server[Symbol.asyncDispose]())

async function sql(statement: string): Promise<unknown[]> {
  const connection = await createConnection(server.database.url)
  const [rows] = await connection.query(statement).finally(() => connection.end())
  return rows as unknown[]
}

/** Lets no token be revoked, as a database that is busy. */
const refusing = `CREATE TRIGGER refusing BEFORE UPDATE ON tokens FOR EACH ROW BEGIN
  IF NEW.state = 'revoked' THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF; END`

test('what the last use of a token did is answered though the token cannot be revoked, which is done later', async () => {
  const made = await done(server.client().post('auth/token/create', { num_uses: 1, policies: ['root'] }))
  const last = server.client(made.string('auth.client_token'))
  await sql(refusing)
  const reply = await last.post('transit/keys/made')
  expect(reply.status, reply.text).toBe(200)
  expect(server.output()).toContain('a token was used up and could not be revoked')
  expect((await last.post('transit/random', {})).status).toBe(403)
  expect(await sql('SELECT id FROM tokens WHERE num_uses < 0')).toHaveLength(1)
  await sql('DROP TRIGGER refusing')
  await expect
    .poll(() => sql('SELECT id FROM tokens WHERE num_uses < 0'), { timeout: 30_000, interval: 500 })
    .toEqual([])
}, 90_000)
