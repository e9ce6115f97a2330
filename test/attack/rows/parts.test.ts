import { createConnection, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../../support/server.ts'

/** Rows of a key's parts that somebody with the database takes away. */

let server: TestServer
beforeAll(async () => {
  server = await startServer({ workers: 1 })
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

const parts = ['key', 'hmac']

test('a rotation of a key that lacks a part of an old version changes nothing', async () => {
  const root = server.client()
  const connection = await createConnection(server.database.url)
  try {
    for (const part of parts) {
      await root.post(`transit/keys/${part}`)
      expect((await root.post(`transit/keys/${part}/rotate`)).status).toBe(200)
    }
    await server.stop()
    for (const part of parts) {
      const [{ affectedRows }] = await connection.query<ResultSetHeader>(
        'DELETE FROM materials WHERE part = ? AND version = 1 AND owner = (SELECT id FROM transit_keys WHERE name = ?)',
        [part, part],
      )
      expect(affectedRows).toBe(1)
    }
    await server.start()
    for (const part of parts) {
      expect((await root.post(`transit/keys/${part}/rotate`)).status).toBe(500)
      const [rows] = await connection.query<RowDataPacket[]>('SELECT latest_version FROM transit_keys WHERE name = ?', [
        part,
      ])
      expect(rows, part).toEqual([{ latest_version: 2 }])
    }
  } finally {
    await connection.end()
  }
}, 120_000)
