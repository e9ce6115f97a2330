import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { type Hold, openHold } from './hold.ts'
import { clientWith, decrypt, encrypt, expectRefused, expectServed, serving } from './nodes.ts'
import { openSql, type Sql } from './sql.ts'
import { verifyWhole } from './writers.ts'

/** kill -9 at the one moment that matters: the COMMIT of a write was sent, and nobody knows whether it was heard. */

let first: TestServer
/** The node whose only worker dies; its line to the database stops at a COMMIT. */
let second: TestServer
let line: Hold
let sql: Sql
let root: Client

beforeAll(async () => {
  first = await startServer()
  line = await openHold(first.database.url)
  second = await startServer({ joins: first, config: { database: { url: line.url } } })
  sql = await openSql(first.database.url)
  root = first.client()
  await encrypt(root, 'bystander')
}, 60_000)
afterAll(async () => {
  await sql?.[Symbol.asyncDispose]()
  await second?.[Symbol.asyncDispose]()
  await line?.[Symbol.asyncDispose]()
  await first?.[Symbol.asyncDispose]()
})

/** Asks the second node, and kills its worker at the first COMMIT. */
async function die(when: 'before' | 'after', ask: (doomed: Client) => Promise<unknown>): Promise<void> {
  const [worker = 0] = serving(second)
  const trapped = line.trap(when)
  const lost = ask(second.client()).catch(() => undefined)
  await trapped
  process.kill(worker, 'SIGKILL')
  await lost
  // The supervisor too: it would wait longer and longer before it starts what dies again and again.
  await second.kill()
  await second.start()
}

let names = 0
const newName = (): string => `key-${names++}`

const data = async (name: string): Promise<Record<string, unknown>> => {
  const read = await root.get(`transit/keys/${name}`)
  return read.status === 404 ? {} : (expectServed(read).body as { data: Record<string, unknown> }).data
}

test.each(['before', 'after'] as const)(
  'killed %s the COMMIT of a create, a rotation, a setting, a trimming, a soft deletion, a deletion',
  async (when) => {
    const done = when === 'after'
    const made = newName()
    await die(when, (doomed) => doomed.post(`transit/keys/${made}`))
    expect((await data(made)).latest_version).toBe(done ? 1 : undefined)
    await verifyWhole(root, sql)

    const name = newName()
    const ciphertext = await encrypt(root, name, 'old')
    await die(when, (doomed) => doomed.post(`transit/keys/${name}/rotate`))
    expect((await data(name)).latest_version).toBe(done ? 2 : 1)
    await verifyWhole(root, sql)

    await die(when, (doomed) => doomed.post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    expect((await data(name)).deletion_allowed).toBe(done)
    expectServed(await decrypt(root, name, ciphertext))

    const aged = newName()
    const first = await encrypt(root, aged, 'first')
    expectServed(await root.post(`transit/keys/${aged}/rotate`))
    expectServed(
      await root.post(`transit/keys/${aged}/config`, { min_decryption_version: 2, min_encryption_version: 2 }),
    )
    await die(when, (doomed) => doomed.post(`transit/keys/${aged}/trim`, { min_available_version: 2 }))
    expect((await data(aged)).min_available_version).toBe(done ? 2 : 0)
    await verifyWhole(root, sql)
    const lowered = await root.post(`transit/keys/${aged}/config`, { min_decryption_version: 1 })
    if (done) expectRefused(lowered)
    else expectServed(await decrypt(root, aged, first))

    await die(when, (doomed) => doomed.delete(`transit/keys/${aged}/soft-delete`))
    expect((await data(aged)).soft_deleted).toBe(done)
    expectServed(await root.post(`transit/keys/${aged}/soft-delete-restore`))

    expectServed(await root.post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    await die(when, (doomed) => doomed.delete(`transit/keys/${name}`))
    expect((await data(name)).latest_version).toBe(done ? undefined : 1)
    if (done) expectRefused(await decrypt(root, name, ciphertext))
    else expectServed(await decrypt(root, name, ciphertext))
    await verifyWhole(root, sql)
  },
  120_000,
)

test.each(['before', 'after'] as const)(
  'killed %s the COMMIT of a revocation, a policy, an unmounting',
  async (when) => {
    const parent = await clientWith(first, ['root'])
    const child = first.client((await parent.post('auth/token/create', {})).string('auth.client_token'))
    const accessor = (await parent.get('auth/token/lookup-self')).string('data.accessor')
    await die(when, (doomed) => doomed.post('auth/token/revoke-accessor', { accessor }))
    // The first of its transactions decides for the whole tree.
    const check = when === 'after' ? expectRefused : expectServed
    for (const client of [parent, child]) check(await client.get('auth/token/lookup-self'))

    const policy = newName()
    await die(when, (doomed) => doomed.post(`sys/policies/acl/${policy}`, { policy: 'path "a" {}' }))
    expect((await root.get(`sys/policies/acl/${policy}`)).status).toBe(when === 'after' ? 200 : 404)

    const mount = newName()
    expectServed(await root.post(`sys/mounts/${mount}`, { type: 'transit' }))
    expectServed(await root.post(`${mount}/keys/key`))
    await die(when, (doomed) => doomed.delete(`sys/mounts/${mount}`))
    expect((await root.get(`${mount}/keys/key`)).status).toBe(when === 'after' ? 404 : 200)
  },
  120_000,
)
