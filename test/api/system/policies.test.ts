import { describe, expect, test } from 'vitest'
import { base64, done, enveloped, expectData, expectRefused, fresh, hello, useNode } from '../node.ts'

const node = useNode()
const text = 'path "transit/keys/*" { capabilities = ["read"] }'
const write = (name: string, policy: unknown, path = 'policies/acl') =>
  node.root.post(`sys/${path}/${name}`, { policy })

describe('sys/policies/acl', () => {
  test('lists default and root before anybody wrote one, and not by GET', async () => {
    const { body } = await node.root.list('sys/policies/acl')
    expect(body).toMatchObject({ data: { keys: expect.arrayContaining(['default', 'root']) } })
    expect((await node.root.get('sys/policies/acl')).status).toBe(405)
  })

  test('keeps the text as it was written', async () => {
    const name = fresh('p')
    const reply = await node.root.call('PUT', `sys/policies/acl/${name}`, { policy: text })
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' })
    expectData(await node.root.get(`sys/policies/acl/${name}`), { name, policy: text })
    await done(write(name, base64('path "b" { capabilities = ["deny"] }')))
    expectData(await node.root.get(`sys/policies/acl/${name}`), {
      name,
      policy: 'path "b" { capabilities = ["deny"] }',
    })
  })

  test('turns names to lower case, with a warning', async () => {
    const name = fresh('p')
    expectData(await write(name.toUpperCase(), text), null, [`policy name was converted to ${name}`])
    expectData(await node.root.get(`sys/policies/acl/${name.toUpperCase()}`), { name, policy: text })
  })

  test.each(['policies/acl', 'policy'])('takes names with slashes, below %s', async (base) => {
    const name = `team/${fresh('p')}/dev`
    expectData(await write(name.toUpperCase(), text, base), null, [`policy name was converted to ${name}`])
    expect((await node.root.get(`sys/${base}/${name}`)).body).toMatchObject({ data: { name } })
    expectData(await node.root.get(`sys/policies/acl/%20${name.toUpperCase()}`), { name, policy: text })
    const { body } = await node.root.list('sys/policies/acl')
    expect((body as { data: { keys: string[] } }).data.keys).toContain(name)
    expect((await node.root.list('sys/policies/acl/team')).status).toBe(405)
    const created = await done(node.root.post('auth/token/create', { policies: [name], no_default_policy: true }))
    const client = node.server.client(created.string('auth.client_token'))
    expect((await client.get(`transit/keys/${await node.key()}`)).status).toBe(200)
    expect((await node.root.delete(`sys/${base}/${name.toUpperCase()}`)).status).toBe(204)
    expectRefused(await node.root.get(`sys/${base}/${name}`), 404)
  })

  test('is 404 for an absent one, deletes it all the same, and reads root as empty', async () => {
    const name = fresh('p')
    expectRefused(await node.root.get(`sys/policies/acl/${name}`), 404)
    expect((await node.root.delete(`sys/policies/acl/${name}`)).status).toBe(204)
    expectData(await node.root.get('sys/policies/acl/root'), { name: 'root', policy: '' })
  })

  test.each([
    ['root', text, 'cannot update "root" policy'],
    ['p', undefined, "'policy' parameter not supplied or empty"],
    ['p', '', "'policy' parameter not supplied or empty"],
    [
      'p',
      'path "a" { zzz = 1 }',
      'failed to parse policy: 1 error occurred:\n\t* path "a": invalid key "zzz" on line 1\n\n',
    ],
    ['p', 'path "x" { capabilities = ["zap"] }', 'failed to parse policy: path "x": invalid capability "zap"'],
    [
      'p',
      'path "a/+*" { capabilities = ["read"] }',
      `failed to parse policy: path "a/+*": invalid use of wildcards ('+*' is forbidden)`,
    ],
  ])('%s with %j is refused: %s', async (name, policy, refusal) => {
    expectRefused(await write(name, policy), 400, refusal)
  })

  test('keeps root and default from being deleted', async () => {
    expectRefused(await node.root.delete('sys/policies/acl/root'), 400, 'cannot delete "root" policy')
    expectRefused(await node.root.delete('sys/policies/acl/default'), 400, 'cannot delete default policy')
  })
})

describe('sys/policy, the older path', () => {
  test('names the text rules, and repeats its data at the top level', async () => {
    const name = fresh('p')
    await done(write(name, text, 'policy'))
    const data = { name, rules: text }
    expect((await node.root.get(`sys/policy/${name}`)).body).toEqual({ ...(enveloped(data) as object), ...data })
    for (const reply of [await node.root.get('sys/policy'), await node.root.list('sys/policy')]) {
      const { keys, policies } = reply.body as { keys: string[]; policies: string[] }
      expect(keys).toEqual(policies)
      expect(keys).toEqual(expect.arrayContaining(['default', name, 'root']))
    }
    expect((await node.root.delete(`sys/policy/${name}`)).status).toBe(204)
    expectRefused(await node.root.get(`sys/policy/${name}`), 404)
  })

  test('takes the text under its older name', async () => {
    const name = fresh('p')
    await done(node.root.post(`sys/policy/${name}`, { rules: text }))
    expectData(await node.root.get(`sys/policies/acl/${name}`), { name, policy: text })
  })
})

test('a changed policy holds for the very next request of every token that has it', async () => {
  const key = await node.key()
  const name = fresh('p')
  await done(write(name, text))
  const created = await done(node.root.post('auth/token/create', { policies: [name], no_default_policy: true }))
  const client = node.server.client(created.string('auth.client_token'))
  for (let round = 0; round < 5; round++) {
    await done(write(name, `path "transit/encrypt/${key}" { capabilities = ["update"] }`))
    expect((await client.post(`transit/encrypt/${key}`, { plaintext: hello })).status).toBe(200)
    expect((await client.get(`transit/keys/${key}`)).status).toBe(403)
    await done(write(name, text))
    expect((await client.post(`transit/encrypt/${key}`, { plaintext: hello })).status).toBe(403)
    expect((await client.get(`transit/keys/${key}`)).status).toBe(200)
  }
  await done(node.root.delete(`sys/policies/acl/${name}`))
  expect((await client.get(`transit/keys/${key}`)).status).toBe(403)
})
