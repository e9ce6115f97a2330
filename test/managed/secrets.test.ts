import { describe, expect, test } from 'vitest'
import { done, expectRefused, fresh, hello } from '../api/node.ts'
import { openSql } from '../attack/sql.ts'
import { makeAes, tool } from './tool.ts'
import { at, dataOf, useWorld } from './world.ts'

const world = useWorld()
const settings = { key_label: 'aes', mechanism: '0x1087' }
const encrypt = (key: string) => world.root.post(`transit/encrypt/${key}`, { plaintext: hello })
const warnings = ({ body }: { body: unknown }) => (body as { warnings: string[] | null }).warnings
const use = async (managed_key_name: string) => {
  const key = fresh('k')
  await done(world.root.post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name }))
  return key
}
async function checkValueOf(key: string): Promise<string> {
  const { custody } = dataOf(await done(world.root.get(`transit/keys/${key}`))) as { custody: Record<string, unknown> }
  return String((custody['1'] as { fingerprint: unknown }).fingerprint)
}
const changed = (name: string) =>
  `managed key "${name}" no longer names the key of this version: rotate to use the one it names now`

describe('a secret key in a token of others', () => {
  test('has a check value, the same for all that use it and another for another key', async () => {
    const [one, other] = [await world.keyOf(world.settingsOf(settings)), await world.keyOf(world.settingsOf(settings))]
    await makeAes(world.sibling, 'second', '21')
    const second = await world.keyOf(world.settingsOf({ ...settings, key_label: 'second' }))
    expect(await checkValueOf(one)).toMatch(/^[0-9a-f]{64}$/)
    expect(await checkValueOf(other)).toBe(await checkValueOf(one))
    expect(await checkValueOf(second)).not.toBe(await checkValueOf(one))
  })

  test.each(['0x1087', '0x1085'])(
    'is pinned: another of its size is refused by every version (%s)',
    async (mechanism) => {
      const label = fresh('third')
      await makeAes(world.sibling, label, fresh('').slice(0, 8))
      const name = await world.managed(world.settingsOf({ ...settings, mechanism }))
      const key = await use(name)
      const ciphertext = (await done(encrypt(key))).string('data.ciphertext')
      await done(world.root.post(at(name), { key_label: label }))
      expectRefused(await encrypt(key), 400, changed(name))
      expectRefused(await world.root.post(`transit/decrypt/${key}`, { ciphertext }), 400, changed(name))
      await done(world.root.post(`transit/keys/${key}/rotate`, { managed_key_name: name }))
      await done(encrypt(key))
      expectRefused(await world.root.post(`transit/decrypt/${key}`, { ciphertext }), 400, changed(name))
    },
  )

  test('is pinned: another one under the same label and id is refused', async () => {
    const [label, id] = [fresh('anew'), '22']
    await makeAes(world.sibling, label, id)
    const name = await world.managed(world.settingsOf({ ...settings, key_label: label, key_id: id }))
    const key = await use(name)
    await done(encrypt(key))
    await tool(world.sibling, '--delete-object', '--type', 'secrkey', '--label', label, '--id', id)
    await makeAes(world.sibling, label, id)
    for (let attempt = 0; attempt < 3; attempt++) expectRefused(await encrypt(key), 400, changed(name))
  })

  test('is counted towards 2^32 in all its versions and names together, under AES-GCM', async () => {
    const label = fresh('busy')
    await makeAes(world.sibling, label, '23')
    const named = () => world.managed(world.settingsOf({ ...settings, key_label: label }))
    const keys = [await use(await named()), await use(await named())]
    const counter = (await checkValueOf(keys[0] ?? '')).slice(0, 32)
    await using sql = await openSql(world.database.url)
    await sql.rows('INSERT INTO usage_counters (material, used) VALUES (?, 2147483648)', [counter])
    for (const key of keys) {
      const reply = await done(encrypt(key))
      expect(warnings(reply)).toEqual(['this key version has encrypted more than 2^31 times: rotate the key'])
    }
    const { used } = await sql.row('SELECT used FROM usage_counters WHERE material = ?', [counter])
    expect(Number(used)).toBeGreaterThan(2147483648)
    expect(warnings(await done(encrypt(await world.keyOf(world.settingsOf(settings)))))).toBeNull()
  })
})
