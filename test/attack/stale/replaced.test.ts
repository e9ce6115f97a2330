import { expect, test } from 'vitest'
import { startServer, type TestServer } from '../../support/server.ts'
import { base64, encrypt, expectServed } from '../nodes.ts'
import { openPinned } from '../pinned.ts'
import { openSql } from '../sql.ts'
import { verifyWhole } from '../writers.ts'

/**
 * A key that is restored over again and again while it is rotated, trimmed and used. Every answer belongs to one whole
 * key or refuses; once a restore is acknowledged and nobody changes the key any more, every worker has the restored
 * one.
 */
const rounds = 12

async function race(servers: readonly TestServer[]): Promise<void> {
  const [first] = servers
  if (first === undefined) throw new Error('no server')
  const root = first.client()
  expectServed(await root.post('transit/keys/key', { allow_plaintext_backup: true }))
  const old = await encrypt(root, 'key')
  for (let version = 2; version <= 4; version++) expectServed(await root.post('transit/keys/key/rotate'))
  const backup = (await root.get('transit/backup/key')).string('data.backup')
  const pinned = servers.flatMap(({ url, rootToken }) => Array.from({ length: 3 }, () => openPinned(url, rootToken)))
  let ended = false
  const wrong: string[] = []

  const restore = async (): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      const by = pinned[round % pinned.length]
      const reply = await by?.ask('POST', 'transit/restore/key', { backup, force: true })
      if (reply?.status !== 204) wrong.push(`restore: ${reply?.status} ${reply?.text}`)
    }
    ended = true
  }
  const change = async (): Promise<void> => {
    while (!ended) {
      for (const [verb, body] of [
        ['rotate', {}],
        ['config', { min_decryption_version: 3, min_encryption_version: 3 }],
        ['trim', { min_available_version: 3 }],
      ] as const) {
        const reply = await root.post(`transit/keys/key/${verb}`, body)
        if (reply.status !== 200 && reply.status !== 400) wrong.push(`${verb}: ${reply.status} ${reply.text}`)
      }
    }
  }
  const use = async (by: (typeof pinned)[number]): Promise<void> => {
    while (!ended) {
      const made = await by.ask('POST', 'transit/encrypt/key', { plaintext: base64('new') })
      if (made.status !== 200) wrong.push(`encrypt: ${made.status} ${made.text}`)
      const opened = await by.ask('POST', 'transit/decrypt/key', { ciphertext: old })
      if (opened.status === 200 ? !opened.text.includes(base64('plain')) : opened.status !== 400) {
        wrong.push(`decrypt: ${opened.status} ${opened.text}`)
      }
    }
  }
  await Promise.all([restore(), change(), ...pinned.map(use)])
  expect(wrong).toEqual([])

  expectServed(await root.post('transit/restore/key', { backup, force: true }))
  for (const by of pinned) {
    const opened = await by.ask('POST', 'transit/decrypt/key', { ciphertext: old })
    expect(opened.text).toContain(base64('plain'))
    expect((await by.ask('POST', 'transit/encrypt/key', { plaintext: '' })).text).toContain('vault:v4:')
    by[Symbol.dispose]()
  }
  await using sql = await openSql(first.database.url)
  await verifyWhole(root, sql)
}

test('over the workers of a node a key that is replaced is the old one or the new one, whole', async () => {
  await using server = await startServer({ workers: 2 })
  await race([server])
}, 120_000)

test('over the nodes of a cluster too', async () => {
  await using first = await startServer()
  await using second = await startServer({ joins: first })
  await race([first, second])
}, 120_000)
