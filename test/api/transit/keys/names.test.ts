import { describe, expect, test } from 'vitest'
import { done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const path = (name: string) => `transit/keys/${encodeURIComponent(name)}`
const unsupported = '1 error occurred:\n\t* unsupported path\n\n'

describe('a key name', () => {
  test.each([
    'a',
    '7',
    '_',
    'A-b.C_d',
    'a--b',
    'a..b',
    '1.2.3',
    'keys',
    'config',
    'true',
    'null',
    '__proto__',
    'constructor',
  ])('may be %s', async (suffix) => {
    const mount = await node.mount()
    await done(node.root.post(`${mount}/keys/${suffix}`))
    expect((await node.root.get(`${mount}/keys/${suffix}`)).body).toMatchObject({ data: { name: suffix } })
    expect((await node.root.list(`${mount}/keys`)).body).toMatchObject({ data: { keys: [suffix] } })
    const made = await node.root.post(`${mount}/encrypt/${suffix}`, { plaintext: hello })
    const opened = await node.root.post(`${mount}/decrypt/${suffix}`, { ciphertext: made.string('data.ciphertext') })
    expect(opened.string('data.plaintext')).toBe(hello)
  })

  test.each(['-a', 'a-', '.a', 'a.', 'a b', 'a*', 'a+', 'a:b', 'ä', '日本', 'a\u0000', 'a\n', 'a%', "a'", 'a"', 'a\\'])(
    'cannot be %j: there is no such path',
    async (name) => {
      for (const reply of [await node.root.post(path(name)), await node.root.get(path(name))]) {
        expect([400, 404], reply.text).toContain(reply.status)
        expect(reply.body).not.toHaveProperty('data')
      }
    },
  )

  test('is told apart by case, and by nothing else', async () => {
    const name = fresh('Case')
    await done(node.root.post(`transit/keys/${name}`, { type: 'ecdsa-p256' }))
    expectRefused(await node.root.get(`transit/keys/${name.toLowerCase()}`), 404)
    await done(node.root.post(`transit/keys/${name.toUpperCase()}`))
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { type: 'ecdsa-p256' } })
    for (const same of [`%${name.charCodeAt(0).toString(16)}${name.slice(1)}`]) {
      expect((await node.root.get(`transit/keys/${same}`)).body).toMatchObject({ data: { name } })
    }
  })

  test('may have 512 characters and no more', async () => {
    const [longest, longer] = ['n'.repeat(512), 'n'.repeat(513)]
    await done(node.root.post(`transit/keys/${longest}`))
    expect((await node.root.get(`transit/keys/${longest}`)).body).toMatchObject({ data: { name: longest } })
    expectRefused(await node.root.post(`transit/keys/${longer}`), 400, 'a key name has at most 512 characters')
    expectRefused(await node.root.get(`transit/keys/${longer}`), 404)
    const upsert = await node.root.post(`transit/encrypt/${longer}`, { plaintext: hello })
    expectRefused(upsert, 400, 'a key name has at most 512 characters')
  })
})

describe('a key that does not exist', () => {
  const missing = fresh('none')
  test.each([
    ['GET', `keys/${missing}`, 404, undefined],
    ['LIST', `keys/${missing}`, 404, unsupported],
    ['DELETE', `keys/${missing}`, 400, `error deleting policy ${missing}: could not delete key; not found`],
    ['DELETE', `keys/${missing}/soft-delete`, 400, `no existing key named ${missing} could be found`],
    ['POST', `keys/${missing}/soft-delete-restore`, 400, `no existing key named ${missing} could be found`],
    ['POST', `keys/${missing}/config`, 400, `no existing key named ${missing} could be found`],
    ['POST', `keys/${missing}/rotate`, 400, 'key not found'],
    ['POST', `keys/${missing}/trim`, 400, 'invalid key name'],
    ['POST', `keys/${missing}/zzz`, 404, unsupported],
    ['POST', `decrypt/${missing}`, 400, 'encryption key not found'],
    ['POST', `rewrap/${missing}`, 400, 'encryption key not found'],
    ['POST', `datakey/wrapped/${missing}`, 400, 'encryption key not found'],
    ['POST', `hmac/${missing}`, 400, 'encryption key not found'],
    ['POST', `sign/${missing}`, 400, 'signing key not found'],
    ['POST', `verify/${missing}`, 400, 'signature verification key not found'],
    ['GET', `export/encryption-key/${missing}`, 404, undefined],
    ['GET', `export/encryption-key/${missing}/1`, 404, undefined],
  ] as const)('%s %s is %i: %s', async (verb, where, status, text) => {
    const body = { ciphertext: 'vault:v1:AAAA', input: hello, signature: 'vault:v1:AAAA', min_available_version: 1 }
    const reply = await node.root.call(verb, `transit/${where}`, verb === 'POST' ? body : undefined)
    expectRefused(reply, status, ...(text === undefined ? [] : [text]))
  })

  test('is not made by any of them', async () => {
    expectRefused(await node.root.get(`transit/keys/${missing}`), 404)
  })
})
