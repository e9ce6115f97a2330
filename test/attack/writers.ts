import { expect } from 'vitest'
import type { Client, Reply } from '../support/client.ts'
import { base64, decrypt, encrypt, expectRefused, expectServed } from './nodes.ts'
import type { Sql } from './sql.ts'

/** Clients that write all the time and remember acknowledged writes only. */
export interface Writers {
  /** Acknowledged writes so far. */
  readonly acknowledged: number
  /** Lets requests that are under way end, and begins no more. */
  stop(): Promise<void>
  /** Checks that everything acknowledged exists and is right, and that everything that exists is whole. */
  verify(sql: Sql): Promise<void>
}

interface Key {
  latest: number
  floor: number
  readonly ciphertexts: Map<string, string>
  /** Undefined while it was asked for and not answered. */
  deleted: boolean | undefined
}

const writers = 6

/** @param root may do everything; the node behind it may be killed at any moment */
export function startWriters(root: Client, revocable: () => Promise<Client>): Writers {
  const keys = new Map<string, Key>()
  const revoked: Client[] = []
  let acknowledged = 0
  let stopping = false

  /** The answer if it is a success; otherwise the outcome is unknown. */
  async function ask(request: Promise<Reply>): Promise<Reply | undefined> {
    const reply = await request.catch(() => undefined)
    if (reply === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      return undefined
    }
    if (reply.status >= 300) {
      expect(reply.status, reply.text).toBe(503)
      return undefined
    }
    acknowledged += 1
    return reply
  }

  /** One key's life: made, used, rotated, used, its floor raised; every third one is deleted. */
  async function live(name: string, deletes: boolean): Promise<void> {
    if (!(await ask(root.post(`transit/keys/${name}`)))) return
    const key: Key = { latest: 1, floor: 1, ciphertexts: new Map(), deleted: false }
    keys.set(name, key)
    const use = async (text: string): Promise<void> => {
      const sealed = await ask(root.post(`transit/encrypt/${name}`, { plaintext: base64(text) }))
      if (sealed) key.ciphertexts.set(text, sealed.string('data.ciphertext'))
    }
    await use(`${name} first`)
    if (!(await ask(root.post(`transit/keys/${name}/rotate`)))) return
    key.latest = 2
    await use(`${name} second`)
    const changes = { min_encryption_version: 2, deletion_allowed: true }
    if (!(await ask(root.post(`transit/keys/${name}/config`, changes)))) return
    key.floor = 2
    if (!deletes) return
    key.deleted = undefined
    if (await ask(root.delete(`transit/keys/${name}`))) key.deleted = true
  }

  async function revoke(): Promise<void> {
    const client = await revocable().catch(() => undefined)
    if (client && (await ask(client.post('auth/token/revoke-self')))) revoked.push(client)
  }

  const running = Array.from({ length: writers }, async (_, writer) => {
    for (let turn = 0; !stopping; turn++) {
      await live(`w${writer}-${turn}`, turn % 3 === 2)
      await revoke()
    }
  })

  async function verifyKey(name: string, key: Key): Promise<void> {
    const read = await root.get(`transit/keys/${name}`)
    if (read.status === 404 && key.deleted !== false) return
    expect(key.deleted, `${name} was deleted`).not.toBe(true)
    const { data } = expectServed(read, name).body as { data: Record<string, number> }
    expect(data.latest_version, name).toBeGreaterThanOrEqual(key.latest)
    expect(data.min_encryption_version, name).toBeGreaterThanOrEqual(key.floor === 2 ? 2 : 0)
    for (const [text, ciphertext] of key.ciphertexts) {
      expect(expectServed(await decrypt(root, name, ciphertext), text).string('data.plaintext')).toBe(base64(text))
    }
  }

  return {
    get acknowledged() {
      return acknowledged
    },
    async stop() {
      stopping = true
      await Promise.all(running)
    },
    async verify(sql) {
      for (const [name, key] of keys) await verifyKey(name, key)
      for (const client of revoked) expectRefused(await client.get('auth/token/lookup-self'))
      await verifyWhole(root, sql)
    },
  }
}

/** Checks that every key has its untrimmed versions, every version its materials, and every material its key. */
export async function verifyWhole(root: Client, sql: Sql): Promise<void> {
  const { keys } = (expectServed(await root.list('transit/keys')).body as { data: { keys: string[] } }).data
  for (const key of keys) {
    const { data } = expectServed(await root.get(`transit/keys/${key}`), key).body as { data: Record<string, unknown> }
    // Every key makes HMACs; not every one encrypts, or without a context.
    const made = expectServed(await root.post(`transit/hmac/${key}`, { input: '' }), key).string('data.hmac')
    expect((await root.post(`transit/verify/${key}`, { input: '', hmac: made })).text, key).toContain('"valid":true')
    if (data.supports_encryption && !data.derived && data.type !== 'managed_key') {
      expectServed(await decrypt(root, key, await encrypt(root, key)), key)
    }
  }
  const none = async (text: string): Promise<void> => expect(await sql.rows(text), text).toEqual([])
  await none(`SELECT k.name FROM transit_keys k WHERE k.latest_version - GREATEST(k.min_available_version, 1) + 1 <>
    (SELECT COUNT(*) FROM transit_versions v WHERE v.key_id = k.id AND v.version <= k.latest_version)`)
  await none('SELECT v.id FROM transit_versions v LEFT JOIN transit_keys k ON k.id = v.key_id WHERE k.id IS NULL')
  await none(`SELECT v.id FROM transit_versions v
    WHERE 1 + (v.hmac_material IS NOT NULL) + (v.prk_material IS NOT NULL) <> (SELECT COUNT(*) FROM materials m
      WHERE m.id IN (v.material, v.hmac_material, v.prk_material) AND m.owner = v.key_id AND m.version = v.version)`)
  await none(`SELECT m.id FROM materials m
    LEFT JOIN transit_versions v ON m.id IN (v.material, v.hmac_material, v.prk_material)
    WHERE v.id IS NULL AND m.part IN ('key', 'hmac', 'prk') AND m.state = 'active'`)
  await none(
    `SELECT m.id FROM materials m LEFT JOIN managed_keys k ON k.id = m.owner WHERE m.part = 'pin' AND k.id IS NULL`,
  )
  await none(`SELECT u.material FROM usage_counters u LEFT JOIN materials m ON m.id = u.material WHERE m.id IS NULL`)
}
