import { expect, test } from 'vitest'
import { done, useNode } from '../api/node.ts'
import { enable } from './device.ts'

/** Secrets that stand where none is expected: they reach a line as HMACs all the same. */

const node = useNode()

async function token(): Promise<string> {
  const made = await done(node.root.post('auth/token/create', { ttl: '1h' }))
  return made.string('auth.client_token')
}

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

test('a device that logs raw shows such a path as it is', async () => {
  const device = await enable(node.root, { log_raw: 'true' })
  const live = await token()
  await node.root.get(`auth/token/lookup/${live}`)
  expect(device.of(`auth/token/lookup/${live}`)).toHaveLength(2)
  await device.disable()
})
