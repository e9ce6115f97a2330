import { describe, expect, test } from 'vitest'
import { done, expectRefused, fresh, useNode } from '../node.ts'

const node = useNode()
const listed = async (client = node.root) => {
  const { body } = await done(client.get('sys/internal/ui/mounts'))
  const { secret, auth } = (body as { data: { secret: object; auth: object } }).data
  return { secret: Object.keys(secret), auth: Object.keys(auth) }
}
const refusal = (path: string) =>
  `preflight capability check returned 403, please ensure client's policies grant access to path "${path}/"`

describe('sys/internal/ui/mounts', () => {
  test('shows the root token everything', async () => {
    const { body } = await done(node.root.get('sys/mounts'))
    const mounts = Object.keys((body as { data: object }).data)
    expect(mounts).toEqual(expect.arrayContaining(['pki/', 'sys/', 'transit/']))
    expect(await listed()).toEqual({ secret: mounts, auth: ['token/'] })
  })

  test('shows a token the mounts in which its policies grant anything at all', async () => {
    const mount = await node.mount()
    const own = await node.limited(`path "${mount}/encrypt/only" { capabilities = ["update"] }`)
    expect(await listed(own)).toEqual({ secret: [`${mount}/`], auth: [] })
    const wild = await node.limited(`path "+/keys/*" { capabilities = ["read"] }`)
    expect((await listed(wild)).secret).toContain(`${mount}/`)
    const denied = await node.limited(`path "${mount}/*" { capabilities = ["deny"] }`)
    expect(await listed(denied)).toEqual({ secret: [], auth: [] })
  })

  test('shows nobody the mounts that are open to everyone, and those with little of them', async () => {
    const path = fresh('m')
    await done(node.root.post(`sys/mounts/${path}`, { type: 'transit', config: { listing_visibility: 'unauth' } }))
    const reply = await done(node.server.client('').get('sys/internal/ui/mounts'))
    expect(reply.body).toMatchObject({
      data: { auth: {}, secret: { [`${path}/`]: { description: '', options: null, type: 'transit' } } },
    })
    const { secret } = (reply.body as { data: { secret: Record<string, object> } }).data
    expect(Object.keys(secret[`${path}/`] ?? {})).toEqual(['description', 'options', 'type'])
    await done(node.root.delete(`sys/mounts/${path}`))
  })
})

describe('sys/internal/ui/mounts/:path', () => {
  test('names the mount of any path below it', async () => {
    const mount = await node.mount()
    for (const path of [mount, `${mount}/keys/a`, `${mount}/`]) {
      const reply = await node.root.get(`sys/internal/ui/mounts/${path}`)
      expect(reply.body).toMatchObject({ data: { path: `${mount}/`, type: 'transit', uuid: expect.any(String) } })
    }
  })

  test('answers a token that may do anything in the mount, and has no rule on sys/', async () => {
    const mount = await node.mount()
    const client = await node.limited(`path "${mount}/encrypt/a" { capabilities = ["update"] }`)
    expect((await client.get(`sys/internal/ui/mounts/${mount}/x`)).status).toBe(200)
    expectRefused(await client.get('sys/internal/ui/mounts/transit'), 403, refusal('transit'))
  })

  test('answers whoever may not know as if there were no mount', async () => {
    const mount = await node.mount()
    for (const client of [node.server.client(''), await node.limited('path "x" { capabilities = ["read"] }')]) {
      expectRefused(await client.get(`sys/internal/ui/mounts/${mount}`), 403, refusal(mount))
      expectRefused(await client.get('sys/internal/ui/mounts/nomount'), 403, refusal('nomount'))
    }
    expectRefused(await node.root.get('sys/internal/ui/mounts/nomount'), 403, refusal('nomount'))
  })
})
