import { expect, test } from 'vitest'
import { done, fresh, hello, useNode } from '../api/node.ts'
import { enable, hidden, type TestDevice } from './device.ts'

/** Secrets that stand where none is expected: they reach a line as HMACs all the same. */

const node = useNode()
const hashed = expect.stringMatching(hidden)

async function token(): Promise<string> {
  const made = await done(node.root.post('auth/token/create', { ttl: '1h' }))
  return made.string('auth.client_token')
}
const last = (device: TestDevice, count: number) => device.lines().slice(-count)

test.each([
  ['GET', (live: string) => `auth/token/lookup/${live}`],
  ['POST', (live: string) => `auth/token/revoke/${live}`],
  ['POST', (live: string) => `nowhere/${live}/x`],
  ['LIST', (live: string) => `transit/${live}`],
  ['POST', (live: string) => `sys/policies/acl/%GG${live}`],
])('a credential in the path of a %s is an HMAC, in the path and in the reason of a refusal', async (method, at) => {
  const device = await enable(node.root)
  const live = await token()
  const limited = await node.limited('path "transit/nothing" { capabilities = ["read"] }')
  for (const client of [node.root, limited, node.server.client('')]) await client.call(method, at(live))
  expect(device.text()).not.toContain(live.slice('hvs.'.length))
  expect(device.text()).toContain(`/${at('').startsWith('sys/') ? '%GG' : ''}${await device.hash(live)}`)
  expect((await node.server.client(live).get('auth/token/lookup-self')).status).toBe(200)
  await device.disable()
})

test('so is one among the names of parameters, in metadata, names of policies and warnings', async () => {
  const device = await enable(node.root)
  const live = await token()
  const key = await node.key()
  const hash = await device.hash(live)
  await done(node.root.post(`transit/encrypt/${key}`, { plaintext: hello, [live]: { [`in ${live}`]: hello } }))
  expect(last(device, 1)[0]).toMatchObject({
    request: { data: { [hash]: { [`in ${hash}`]: hashed } } },
    response: { warnings: [expect.stringContaining(`[${hash}]`)] },
  })
  const made = await done(node.root.post('auth/token/create', { meta: { seen: live, [live]: '' }, policies: [live] }))
  expect(last(device, 1)[0]).toMatchObject({ response: { auth: { metadata: { seen: hash, [hash]: '' } } } })
  const policy = 'path "sys/mounts" { capabilities = ["read"] }'
  await done(node.root.post(`sys/policies/acl/${live}`, { policy }))
  const named = await device.hash(live.toLowerCase())
  await done(node.server.client(made.string('auth.client_token')).get('sys/mounts'))
  expect(last(device, 1)[0]).toMatchObject({ auth: { policy_results: { granting_policies: [{ name: named }] } } })
  expect(device.text()).not.toContain(live.slice('hvs.'.length))
  expect(device.text()).not.toContain(live.slice('hvs.'.length).toLowerCase())
  await device.disable()
})

test('of many credentials in a path the first sixteen are HMACs, the others leave its lines no longer than it is', async () => {
  const device = await enable(node.root)
  const path = `nowhere/${Array(1000).fill('hvs.aaaaaaaa').join('/')}`
  expect((await node.server.client('guess').get(path)).status).toBe(403)
  const lines = device.lines().filter(({ request }) => request.path.startsWith('nowhere/'))
  const hash = await device.hash('hvs.aaaaaaaa')
  const shown = `nowhere/${[...Array(16).fill(hash), ...Array(984).fill('[redacted]')].join('/')}`
  expect(lines.map(({ request }) => request.path)).toEqual([shown, shown])
  expect(shown.length).toBeLessThan(path.length)
  await device.disable()
})

test('a device that logs raw shows such a path as it is', async () => {
  const device = await enable(node.root, { log_raw: 'true' })
  const live = await token()
  await node.root.get(`auth/token/lookup/${live}`)
  expect(device.of(`auth/token/lookup/${live}`)).toHaveLength(2)
  await device.disable()
})

test('a number sent for a text is on record as the HMAC of that text', async () => {
  const device = await enable(node.root)
  const key = await node.key()
  const name = `sys/managed-keys/pkcs11/${fresh('m')}`
  await node.root.post(name, { pin: 123_456, key_label: 77, library: 12 })
  expect(last(device, 1)[0]?.request.data).toEqual({
    pin: await device.hash('123456'),
    key_label: await device.hash('77'),
    library: await device.hash('12'),
  })
  await done(node.root.post('auth/token/create', { id: 12_345_678, ttl: 60, num_uses: 5, meta: { a: 1 } }))
  expect(last(device, 1)[0]?.request.data).toEqual({
    id: await device.hash('12345678'),
    ttl: 60,
    num_uses: 5,
    meta: { a: await device.hash('1') },
  })
  await done(node.root.post(`transit/encrypt/${key}`, { plaintext: 1234, key_version: 1 }))
  expect(last(device, 1)[0]?.request.data).toEqual({ plaintext: await device.hash('1234'), key_version: 1 })
  expect(device.text()).not.toMatch(/"(?:pin|id|plaintext|key_label)":\d/)
  await device.disable()
})

test('so is one in a batch, in a list, under a name in capitals, or under one that the path does not have', async () => {
  const device = await enable(node.root)
  const key = await node.key()
  const item = { plaintext: 1234, key_version: 1, reference: 5678 }
  await node.root.post(`transit/encrypt/${key}`, {
    batch_input: [item, { plaintext: hello }, 4321],
    PLAINTEXT: 8765,
    pin: [1357, { deep: 2468 }],
  })
  expect(last(device, 1)[0]?.request.data).toEqual({
    batch_input: [
      { plaintext: await device.hash('1234'), key_version: 1, reference: await device.hash('5678') },
      { plaintext: hashed },
      await device.hash('4321'),
    ],
    PLAINTEXT: await device.hash('8765'),
    pin: [await device.hash('1357'), { deep: await device.hash('2468') }],
  })
  await node.root.post('transit/nowhere', { pin: 123_456 })
  expect(last(device, 1)[0]?.request.data).toEqual({ pin: await device.hash('123456') })
  await device.disable()
})

test('numbers of settings that are read as they are stay', async () => {
  const device = await enable(node.root)
  const path = fresh('m')
  await done(node.root.post(`sys/mounts/${path}`, { type: 'transit', config: { default_lease_ttl: 60 } }))
  expect(last(device, 1)[0]?.request.data).toEqual({ type: hashed, config: { default_lease_ttl: 60 } })
  await done(node.root.post(`sys/quotas/rate-limit/${fresh('q')}`, { path, rate: 1000, interval: 60 }))
  expect(last(device, 1)[0]?.request.data).toEqual({ path: hashed, rate: 1000, interval: 60 })
  await device.disable()
})
