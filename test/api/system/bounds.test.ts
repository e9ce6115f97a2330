import { mkdtempSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openSql } from '../../attack/sql.ts'
import { dial, hear } from '../../http/wire.ts'
import { runDirectory } from '../../support/directory.ts'
import { startServer } from '../../support/server.ts'
import { done, expectRefused, fresh, useNode } from '../node.ts'

const node = useNode()

describe('a description is kept whole or refused', () => {
  const lengths = [1, 15_999, 16_000, 16_001, 70_000]
  const words = (length: number) => '𐍈'.repeat(length / 2) + 'x'.repeat(length % 2)

  test.each(lengths)('%i characters, of a mount that is made or tuned', async (length) => {
    const mount = await node.mount()
    const description = words(length)
    const tuned = await node.root.post(`sys/mounts/${mount}/tune`, { description })
    const made = await node.root.post(`sys/mounts/${fresh('m')}`, { type: 'transit', description })
    expect([tuned.status, made.status], tuned.text.slice(0, 200)).toEqual(length > 16_000 ? [400, 400] : [204, 204])
    if (length > 16_000) return expectRefused(tuned, 400, 'description must not be longer than 16000 characters')
    expect((await node.root.get(`sys/mounts/${mount}`)).string('data.description')).toBe(description)
  })

  test.each(lengths)('%i characters, of an audit device', async (length) => {
    const [name, description] = [fresh('d'), words(length)]
    const options = { file_path: join(mkdtempSync(join(runDirectory(), 'audit-')), 'log') }
    const reply = await node.root.post(`sys/audit/${name}`, { type: 'file', description, options })
    if (length > 16_000) return expectRefused(reply, 400, 'description must not be longer than 16000 characters')
    expect(reply.status).toBe(204)
    const { body } = await node.root.get('sys/audit')
    expect(body).toMatchObject({ data: { [`${name}/`]: { description } } })
    await done(node.root.delete(`sys/audit/${name}`))
  })

  test.each(['options', 'config'])('and so are other settings of a mount: %s', async (field) => {
    const value = { audit_non_hmac_request_keys: 'x'.repeat(500_000) }
    const made = await node.root.post(`sys/mounts/${fresh('m')}`, { type: 'transit', [field]: value })
    expectRefused(made, 400, `${field} of a mount must not be longer than 64000 characters in JSON`)
    const tuned = await node.root.post(
      `sys/mounts/${await node.mount()}/tune`,
      field === 'config' ? value : { options: value },
    )
    expectRefused(tuned, 400, `${field} of a mount must not be longer than 64000 characters in JSON`)
    const larger = { audit_non_hmac_request_keys: 'x'.repeat(18_000_000) }
    const refused = await node.root.post(`sys/mounts/${fresh('m')}`, { type: 'transit', [field]: larger })
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('longer than 524288 characters')])
  })
})

test.each(['x'.repeat(33), 'a"b', '<?php', '#!/bin/sh', 'ä', '* * * * * '])(
  'an audit device has no prefix %j',
  async (prefix) => {
    const options = { file_path: '/tmp/x', prefix }
    const reply = await node.root.post('sys/audit/never', { type: 'file', options })
    expectRefused(reply, 400, 'option prefix may have 32 letters, digits, @ _ : . - and blanks')
  },
)

test('audit files lie in audit/ of the state directory where the configuration names no other place', async () => {
  await using server = await startServer({ joins: node.server, config: { audit: undefined } })
  const directory = join(server.stateDirectory, 'audit')
  expect(statSync(directory).mode & 0o777).toBe(0o700)
  const root = server.client()
  const enable = (file_path: string) => root.post('sys/audit/own', { type: 'file', options: { file_path } })
  for (const file of [join(directory, '../pin'), `${directory}x`, '/tmp/x', join(directory, '..', '..', 'x')]) {
    const why = `option file_path must lie in ${directory}: audit.directory of the configuration names another place`
    expectRefused(await enable(file), 400, why)
  }
  const file = join(directory, 'audit.log')
  expect((await enable(file)).status).toBe(204)
  await done(root.delete('sys/audit/own'))
  expect(readFileSync(file, 'utf8')).toContain('"path":"sys/audit/own"')
})

test('the history of a key names its maker, and tells nobody the accessor', async () => {
  const name = fresh('p')
  await done(
    node.root.post(`sys/policies/acl/${name}`, {
      policy: 'path "*" { capabilities = ["create", "update", "read", "delete"] }',
    }),
  )
  const display_name = 'x'.repeat(255)
  const made = await done(node.root.post('auth/token/create', { policies: [name], display_name }))
  const maker = node.server.client(made.string('auth.client_token'))
  const [key, other] = [fresh('k'), fresh('k')]
  for (const one of [key, other]) await done(maker.post(`transit/keys/${one}`))
  await done(node.root.post(`transit/keys/${key}/rotate`))
  const texts = [await node.root.get(`transit/keys/${key}`), await node.root.get(`transit/keys/${other}`)]
  const makers = texts.map(({ text }) => [...text.matchAll(/"created_by":"([^"]*)"/g)].map(([, by]) => by))
  expect(makers[0]?.[0]).toMatch(/^token-x{154} hmac-sha256:[0-9a-f]{64}$/)
  expect(makers[1]?.[0]).toBe(makers[0]?.[0])
  expect(makers[0]?.at(-1)).toMatch(/^root hmac-sha256:[0-9a-f]{64}$/)
  for (const { text } of texts) expect(text).not.toContain(made.string('auth.accessor'))
})

test('nor does any row of a key, of transit or of an authority', async () => {
  const made = await done(node.root.post('auth/token/create', { policies: ['root'] }))
  const [maker, accessor] = [node.server.client(made.string('auth.client_token')), made.string('auth.accessor')]
  const [mount, other] = [fresh('pki'), fresh('pki')]
  for (const path of [mount, other]) await done(maker.post(`sys/mounts/${path}`, { type: 'pki' }))
  await using sql = await openSql(node.server.database.url)
  const count = async () => Number((await sql.row('SELECT COUNT(*) n FROM materials')).n)
  const before = await count()
  const subject = { common_name: 'x', key_type: 'ec' }
  const exported = await done(maker.post(`${mount}/root/generate/exported`, subject))
  await done(maker.post(`${mount}/intermediate/generate/internal`, subject))
  await done(maker.post(`${mount}/keys/generate/internal`, { key_type: 'ec' }))
  const bundle = `${exported.string('data.certificate')}\n${exported.string('data.private_key')}`
  await done(maker.post(`${other}/config/ca`, { pem_bundle: bundle }))
  await done(maker.post(`transit/keys/${fresh('k')}`, { type: 'aes256-gcm96' }))
  expect(await count()).toBeGreaterThanOrEqual(before + 5)
  const by = (await sql.rows('SELECT created_by FROM materials ORDER BY id')).slice(before).map((row) => row.created_by)
  expect(by).toEqual(by.map(() => expect.stringMatching(/^token hmac-sha256:[0-9a-f]{64}$/)))
  for (const table of (await sql.tables()).filter((name) => name !== 'tokens' && name !== 'leases')) {
    const rows = JSON.stringify(await sql.rows(`SELECT * FROM \`${table}\``))
    expect(rows.includes(accessor), table).toBe(false)
  }
})

test('a request with two Host headers is refused, and its connection ends', async () => {
  const port = Number(new URL(node.server.url).port)
  for (const [first, second] of [
    ['Host: a', 'Host: a'],
    ['Host: a', 'host: b'],
    ['hOsT: a', 'Host: b'],
  ]) {
    const socket = await dial(port)
    const health = `GET /v1/sys/health HTTP/1.1\r\n`
    socket.write(`${health}${first}\r\nX-Y: z\r\n${second}\r\n\r\n${health}Host: a\r\n\r\n`)
    const heard = await hear(socket)
    expect(heard.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 400'])
    expect(heard).toContain('{"errors":["a request must have one Host header"]}')
  }
})

test('?help=1 takes a use of a token, and the last one ends it', async () => {
  const made = await done(node.root.post('auth/token/create', { policies: ['default'], num_uses: 2 }))
  const client = node.server.client(made.string('auth.client_token'))
  const accessor = made.string('auth.accessor')
  expect((await client.get('auth/token/lookup-self?help=1')).status).toBe(200)
  const left = await done(node.root.post('auth/token/lookup-accessor', { accessor }))
  expect(left.body).toMatchObject({ data: { num_uses: 1 } })
  expect((await client.get('transit/keys?help=1')).status).toBe(403)
  expectRefused(await client.get('auth/token/lookup-self?help=1'), 403, 'permission denied')
  expect((await node.root.post('auth/token/lookup-accessor', { accessor })).status).toBe(400)
})
