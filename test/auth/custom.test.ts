import { expect, test } from 'vitest'
import { createWorld, service } from './world.ts'

// In a file of its own: once a custom token has existed, texts of other forms are looked up.
test('a chosen text works on every worker once it exists, and no other does', async () => {
  await using world = await createWorld(3)
  for (const node of world.nodes) expect(await node.tokens.lookup('chosen')).toBeUndefined()
  const { row } = await world.node.tokens.create(service(null, { custom: 'chosen' }))
  for (const node of world.nodes) expect((await node.tokens.lookup('chosen'))?.id).toBe(row.id)
  for (const text of ['Chosen', 'chosen ', 'chose']) expect(await world.node.tokens.lookup(text)).toBeUndefined()
  await expect(world.node.tokens.create(service(null, { custom: 'chosen' }))).rejects.toThrow('duplicate ID')
  await world.node.tokens.revoke(row.id)
  for (const node of world.nodes) expect(await node.tokens.lookup('chosen')).toBeUndefined()
  const again = await world.node.tokens.create(service(null, { custom: 'chosen' }))
  for (const node of world.nodes) expect((await node.tokens.lookup('chosen'))?.id).toBe(again.row.id)
  await world.node.tokens.revoke(again.row.id)
})

test('no custom credential lies in any table', async () => {
  await using world = await createWorld(1, 'my-chosen-root')
  const tables = await world.sql(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
  )
  for (const { name } of tables) {
    for (const row of await world.sql(`SELECT * FROM ${name}`)) {
      for (const value of Object.values(row)) {
        const text = Buffer.isBuffer(value) ? value.toString('latin1') : String(value)
        expect(text, `${name}`).not.toContain('my-chosen-root')
      }
    }
  }
})
