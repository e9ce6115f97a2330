import { describe, expect, test } from 'vitest'
import type { Reply } from '../../support/client.ts'
import { done, fresh, hello, useSharedNode } from '../node.ts'

const node = useSharedNode()
const statuses = (replies: readonly Reply[]): readonly number[] =>
  [...new Set(replies.map(({ status }) => status))].sort()
const dataOf = (reply: Reply) =>
  (reply.body as { data: { latest_version: number; keys: Record<string, unknown> } }).data

describe('sixteen at once', () => {
  test('rotations of one key answer sixteen different versions, each the key as it left it', async () => {
    const name = await node.key()
    const replies = await Promise.all(Array.from({ length: 16 }, () => node.root.post(`transit/keys/${name}/rotate`)))
    expect(statuses(replies)).toEqual([200])
    const states = replies.map(dataOf)
    const latest = states.map(({ latest_version }) => latest_version)
    expect(latest.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, index) => index + 2))
    for (const { latest_version, keys } of states) {
      const versions = Array.from({ length: latest_version }, (_, index) => String(index + 1))
      expect(Object.keys(keys)).toEqual(versions)
    }
  })

  test('configurations of one key each answer their own change', async () => {
    const name = await node.key()
    const periods = Array.from({ length: 16 }, (_, index) => 3600 + index)
    const replies = await Promise.all(
      periods.map((auto_rotate_period) => node.root.post(`transit/keys/${name}/config`, { auto_rotate_period })),
    )
    expect(statuses(replies)).toEqual([200])
    expect(replies.map(({ body }) => (body as { data: unknown }).data)).toEqual(
      periods.map((auto_rotate_period) => expect.objectContaining({ auto_rotate_period })),
    )
  })
})

describe('sixteen first deletions at once', () => {
  const names = Array.from({ length: 16 }, (_, index) => `n${index}`)

  test('of keys of a fresh mount are all carried out', async () => {
    await done(node.root.post('sys/mounts/first', { type: 'transit' }))
    for (const name of names) {
      await done(node.root.post(`first/keys/${name}`))
      await done(node.root.post(`first/keys/${name}/config`, { deletion_allowed: true }))
    }
    const replies = await Promise.all(names.map((name) => node.root.delete(`first/keys/${name}`)))
    expect(statuses(replies)).toEqual([204])
    expect((await node.root.list('first/keys')).status).toBe(404)
  })

  test('of roles of a fresh mount are all carried out', async () => {
    await done(node.root.post('sys/mounts/roles', { type: 'pki' }))
    for (const name of names) await done(node.root.post(`roles/roles/${name}`, { allow_any_name: true }))
    const replies = await Promise.all(names.map((name) => node.root.delete(`roles/roles/${name}`)))
    expect(statuses(replies)).toEqual([204])
    expect((await node.root.list('roles/roles')).status).toBe(404)
  })
})

/** Three clients that rotate a key until they are told to stop; every answer they had. */
function rotating(name: string) {
  let going = true
  const client = async (): Promise<Reply[]> => {
    const replies: Reply[] = []
    while (going) replies.push(await node.root.post(`transit/keys/${name}/rotate`))
    return replies
  }
  const clients = [client(), client(), client()]
  return async (): Promise<Reply[]> => {
    going = false
    return (await Promise.all(clients)).flat()
  }
}

describe('a key that three clients rotate', () => {
  test('is deleted at the first try', async () => {
    const name = await node.key()
    await done(node.root.post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    const stop = rotating(name)
    const deleted = await node.root.delete(`transit/keys/${name}`)
    const rotated = await stop()
    expect(deleted.status, deleted.text).toBe(204)
    expect(rotated.filter(({ status }) => status >= 500)).toEqual([])
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  })

  test('is soft-deleted at the first try, and restored', async () => {
    const name = await node.key()
    const stop = rotating(name)
    const put = await node.root.delete(`transit/keys/${name}/soft-delete`)
    const restored = await node.root.post(`transit/keys/${name}/soft-delete-restore`)
    const rotated = await stop()
    expect([put.status, restored.status], put.text).toEqual([200, 200])
    expect(statuses(rotated.filter(({ status }) => status !== 200 && status !== 400))).toEqual([])
  })

  test('is replaced by a backup at the first try', async () => {
    const name = await node.key({ allow_plaintext_backup: true, exportable: true })
    const backup = (await done(node.root.get(`transit/backup/${name}`))).string('data.backup')
    const stop = rotating(name)
    const restored = await node.root.post(`transit/restore/${name}`, { backup, force: true })
    const rotated = await stop()
    expect(restored.status, restored.text).toBe(204)
    expect(rotated.filter(({ status }) => status >= 500)).toEqual([])
  })
})

test('a create that races with the deletion of its name answers a key, never a missing one', async () => {
  const name = fresh('k')
  const create = () => node.root.post(`transit/keys/${name}`)
  const remove = async () => {
    await node.root.post(`transit/keys/${name}/config`, { deletion_allowed: true })
    return node.root.delete(`transit/keys/${name}`)
  }
  const created: Reply[] = []
  for (let round = 0; round < 15; round++) {
    const [, ...replies] = await Promise.all([remove(), create(), create(), create()])
    created.push(...replies)
  }
  expect(statuses(created)).toEqual([200])
  expect((await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })).status).toBeLessThan(500)
})
