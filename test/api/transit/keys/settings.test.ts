import { describe, expect, test } from 'vitest'
import { openSql } from '../../../attack/sql.ts'
import { done, expectData, expectRefused, fresh, hello, useNode } from '../../node.ts'

const node = useNode()
const reload = (mount: string) => done(node.root.post('sys/plugins/reload/backend', { mounts: [mount] }))
const sizeWarning = ['the size takes effect when the plugin is reloaded: sys/plugins/reload/backend']

describe('config/keys', () => {
  test('is false until set, answers the stored value, and a write without the field sets false', async () => {
    const mount = await node.mount()
    expectData(await node.root.get(`${mount}/config/keys`), { disable_upsert: false })
    expectData(await node.root.post(`${mount}/config/keys`, { disable_upsert: true }), { disable_upsert: true })
    expectData(await node.root.get(`${mount}/config/keys`), { disable_upsert: true })
    expectData(await node.root.post(`${mount}/config/keys`), { disable_upsert: false })
    expectData(await node.root.get(`${mount}/config/keys`), { disable_upsert: false })
  })

  test('with disable_upsert lets encrypt make no keys in this mount, and existing ones still encrypt', async () => {
    const [mount, other] = [await node.mount(), await node.mount()]
    await done(node.root.post(`${mount}/keys/old`))
    await done(node.root.post(`${mount}/config/keys`, { disable_upsert: true }))
    const name = fresh('k')
    const missing = 'encryption key not found'
    expectRefused(await node.root.post(`${mount}/encrypt/${name}`, { plaintext: hello }), 400, missing)
    expectRefused(await node.root.get(`${mount}/keys/${name}`), 404)
    await done(node.root.post(`${mount}/encrypt/old`, { plaintext: hello }))
    await done(node.root.post(`${other}/encrypt/${name}`, { plaintext: hello }))
    await done(node.root.post(`${mount}/config/keys`, { disable_upsert: 'false' }))
    await done(node.root.post(`${mount}/encrypt/${name}`, { plaintext: hello }))
  })

  test('refuses a value that is not a boolean', async () => {
    const reply = await node.root.post('transit/config/keys', { disable_upsert: 'maybe' })
    expect(reply.status).toBe(400)
    expect(reply.text).toContain('disable_upsert')
  })

  test('that was taken out of the database is damage, and no way to allow upserts again', async () => {
    const mount = await node.mount()
    await done(node.root.post(`${mount}/config/keys`, { disable_upsert: true }))
    await using sql = await openSql(node.server.database.url)
    const { id } = await sql.row(`SELECT id FROM mounts WHERE path = '${mount}/'`)
    await sql.rows('DELETE FROM transit_config WHERE mount = ?', [id ?? null])
    await sql.invalidate()
    const reply = await node.root.post(`${mount}/encrypt/new`, { plaintext: hello })
    expect(reply.status, reply.text).toBe(500)
    expect((await node.root.post(`${mount}/config/keys`, { disable_upsert: false })).status).toBe(500)
  })
})

describe('cache-config', () => {
  test('is 0 until set, and answers the new size with a warning that it waits for a reload', async () => {
    const mount = await node.mount()
    expectData(await node.root.get(`${mount}/cache-config`), { size: 0 })
    expectData(await node.root.post(`${mount}/cache-config`, { size: 10 }), { size: 10 }, sizeWarning)
    expectData(await node.root.get(`${mount}/cache-config`), { size: 10 })
    expectData(await node.root.post(`${mount}/cache-config`, {}), { size: 0 }, sizeWarning)
  })

  test.each([1, 9, -1, '5'])('refuses a size of %s', async (size) => {
    const text = 'size must be 0 or a value greater or equal to 10'
    expectRefused(await node.root.post('transit/cache-config', { size }), 400, text)
  })

  test('with fewer places than keys in use serves all of them, through rotation and deletion', async () => {
    const mount = await node.mount()
    await done(node.root.post(`${mount}/cache-config`, { size: 10 }))
    await reload(mount)
    const names = Array.from({ length: 15 }, (_, index) => `k${index}`)
    for (const name of names) await done(node.root.post(`${mount}/keys/${name}`))
    for (let version = 2; version < 4; version++) {
      for (const name of names) await done(node.root.post(`${mount}/keys/${name}/rotate`))
      for (const name of names) {
        const reply = await node.root.post(`${mount}/encrypt/${name}`, { plaintext: hello })
        expect(reply.body).toMatchObject({ data: { key_version: version } })
      }
    }
    await done(node.root.post(`${mount}/cache-config`, { size: 0 }))
    await reload(mount)
    await done(node.root.post(`${mount}/encrypt/k3`, { plaintext: hello }))
  })
})
