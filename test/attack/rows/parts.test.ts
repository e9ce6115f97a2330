import { createConnection, type ResultSetHeader } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../../support/server.ts'

/** Rows of a key's parts that somebody with the database takes away. */

let server: TestServer
beforeAll(async () => {
  server = await startServer({ workers: 1 })
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

const parts = ['key', 'hmac']

test('a key that lacks a part of an old version is rotated and cured; answers leave that version out', async () => {
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
      expect((await root.get(`transit/keys/${part}`)).status).toBe(500)
      const rotated = await root.post(`transit/keys/${part}/rotate`)
      expect(rotated).toMatchObject({
        status: 200,
        body: { data: { keys: { 2: expect.anything(), 3: expect.anything() } } },
      })
      expect(rotated).not.toMatchObject({ body: { data: { keys: { 1: expect.anything() } } } })
      expect((await root.delete(`transit/keys/${part}/soft-delete`)).status).toBe(200)
      expect((await root.post(`transit/keys/${part}/soft-delete-restore`)).status).toBe(200)
      const floors = { min_decryption_version: 2, min_encryption_version: 2 }
      expect((await root.post(`transit/keys/${part}/config`, floors)).status).toBe(200)
      expect((await root.get(`transit/keys/${part}`)).status).toBe(200)
      expect((await root.post(`transit/keys/${part}/trim`, { min_available_version: 2 })).status).toBe(200)
      expect((await root.post(`transit/keys/${part}/rotate`)).status).toBe(200)
    }
  } finally {
    await connection.end()
  }
}, 120_000)

test('a key that lacks a part of its latest version is deleted', async () => {
  const root = server.client()
  const connection = await createConnection(server.database.url)
  try {
    await root.post('transit/keys/last')
    await server.stop()
    await connection.query(
      "DELETE FROM materials WHERE part = 'key' AND owner = (SELECT id FROM transit_keys WHERE name = 'last')",
    )
    await server.start()
    expect((await root.post('transit/keys/last/config', { deletion_allowed: true })).status).toBe(200)
    expect((await root.delete('transit/keys/last')).status).toBe(204)
    expect((await root.get('transit/keys/last')).status).toBe(404)
  } finally {
    await connection.end()
  }
}, 120_000)
