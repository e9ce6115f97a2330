import { beforeAll, expect, test } from 'vitest'
import { clientWith, decrypt, encrypt, expectRefused, expectServed } from '../nodes.ts'
import { verifyWhole } from '../writers.ts'
import { useDoomed } from './doomed.ts'

/** kill -9 at the one moment that matters: the COMMIT of a write was sent, and nobody knows whether it was heard. */

const doomed = useDoomed()
const { die } = doomed
beforeAll(() => encrypt(doomed.root, 'bystander'))

let names = 0
const newName = (): string => `key-${names++}`

const data = async (name: string): Promise<Record<string, unknown>> => {
  const read = await doomed.root.get(`transit/keys/${name}`)
  return read.status === 404 ? {} : (expectServed(read).body as { data: Record<string, unknown> }).data
}

test.each(['before', 'after'] as const)(
  'killed %s the COMMIT of a create, a rotation, a setting, a trimming, a soft deletion, a deletion',
  async (when) => {
    const { root, sql } = doomed
    const done = when === 'after'
    const made = newName()
    await die(when, (node) => node.post(`transit/keys/${made}`))
    expect((await data(made)).latest_version).toBe(done ? 1 : undefined)
    await verifyWhole(root, sql)

    const name = newName()
    const ciphertext = await encrypt(root, name, 'old')
    await die(when, (node) => node.post(`transit/keys/${name}/rotate`))
    expect((await data(name)).latest_version).toBe(done ? 2 : 1)
    await verifyWhole(root, sql)

    await die(when, (node) => node.post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    expect((await data(name)).deletion_allowed).toBe(done)
    expectServed(await decrypt(root, name, ciphertext))

    const aged = newName()
    const first = await encrypt(root, aged, 'first')
    expectServed(await root.post(`transit/keys/${aged}/rotate`))
    expectServed(
      await root.post(`transit/keys/${aged}/config`, { min_decryption_version: 2, min_encryption_version: 2 }),
    )
    await die(when, (node) => node.post(`transit/keys/${aged}/trim`, { min_available_version: 2 }))
    expect((await data(aged)).min_available_version).toBe(done ? 2 : 0)
    await verifyWhole(root, sql)
    const lowered = await root.post(`transit/keys/${aged}/config`, { min_decryption_version: 1 })
    if (done) expectRefused(lowered)
    else expectServed(await decrypt(root, aged, first))

    await die(when, (node) => node.delete(`transit/keys/${aged}/soft-delete`))
    expect((await data(aged)).soft_deleted).toBe(done)
    expectServed(await root.post(`transit/keys/${aged}/soft-delete-restore`))

    expectServed(await root.post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    await die(when, (node) => node.delete(`transit/keys/${name}`))
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
    const { first, root } = doomed
    const parent = await clientWith(first, ['root'])
    const child = first.client((await parent.post('auth/token/create', {})).string('auth.client_token'))
    const accessor = (await parent.get('auth/token/lookup-self')).string('data.accessor')
    await die(when, (node) => node.post('auth/token/revoke-accessor', { accessor }))
    // The first of its transactions decides for the whole tree.
    const check = when === 'after' ? expectRefused : expectServed
    for (const client of [parent, child]) check(await client.get('auth/token/lookup-self'))

    const policy = newName()
    await die(when, (node) => node.post(`sys/policies/acl/${policy}`, { policy: 'path "a" {}' }))
    expect((await root.get(`sys/policies/acl/${policy}`)).status).toBe(when === 'after' ? 200 : 404)

    const mount = newName()
    expectServed(await root.post(`sys/mounts/${mount}`, { type: 'transit' }))
    expectServed(await root.post(`${mount}/keys/key`))
    await die(when, (node) => node.delete(`sys/mounts/${mount}`))
    expect((await root.get(`${mount}/keys/key`)).status).toBe(when === 'after' ? 404 : 200)
  },
  120_000,
)
