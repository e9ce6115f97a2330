import { mkdtempSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runDirectory } from '../support/directory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { strongroom } from './cli.ts'

let server: TestServer
let directory: string

beforeAll(async () => {
  server = await startServer()
  directory = mkdtempSync(join(runDirectory(), 'roots-'))
  const file_path = join(directory, 'audit.log')
  expect((await server.client().post('sys/audit/file', { type: 'file', options: { file_path } })).status).toBe(204)
}, 60_000)
afterAll(() => server?.[Symbol.asyncDispose]())

interface Root {
  readonly root_token: string
  readonly accessor: string
  readonly expires_at: string
}

const environment = () => ({ SOFTHSM2_CONF: process.env.SOFTHSM2_CONF ?? '' })
const rootToken = (...more: string[]) =>
  strongroom(['root-token', '--config', server.configFile, ...more], environment())

async function made(...more: string[]): Promise<Root> {
  const { code, stdout, stderr } = await rootToken('--json', ...more)
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout)
}

describe('root-token', () => {
  test('makes a root token of one hour, which its accessor revokes', async () => {
    const root = await made()
    const client = server.client(root.root_token)
    const { body } = await client.get('auth/token/lookup-self')
    expect(body).toMatchObject({
      data: { accessor: root.accessor, policies: ['root'], creation_ttl: 3600, expire_time: root.expires_at },
    })
    expect((await client.post('sys/policies/acl/p', { policy: 'path "x" { capabilities = ["read"] }' })).status).toBe(
      204,
    )
    const { accessor } = root
    expect((await server.client().post('auth/token/revoke-accessor', { accessor })).status).toBe(204)
    expect((await client.get('auth/token/lookup-self')).status).toBe(403)
  })

  test('lives as long as it was asked to', async () => {
    const client = server.client((await made('--ttl', '90s')).root_token)
    expect((await client.get('auth/token/lookup-self')).body).toMatchObject({ data: { creation_ttl: 90 } })
    for (const ttl of ['0', '769h', 'soon'])
      expect(await rootToken('--ttl', ttl), ttl).toMatchObject({ code: 2, stdout: '' })
  })

  test('is on record in the audit file, whose chains stay unbroken', async () => {
    const file = join(directory, 'audit.log')
    const { root_token: credential, accessor } = await made()
    const text = readFileSync(file, 'utf8')
    expect(text).not.toContain(credential)
    expect(text).not.toContain(accessor)
    const lines = text.split('\n').filter((line) => line.includes('"path":"sys/root-token"'))
    const types = lines.slice(-2).map((line) => JSON.parse(line).type)
    expect(types).toEqual(['request', 'response'])
    await server.stop()
    const verified = await strongroom(['audit', 'verify', '--config', server.configFile, file], environment())
    expect(verified, verified.stderr).toMatchObject({ code: 0 })
    await server.start()
  })

  test('is not made where no audit device can be written', async () => {
    const count = async () => (await server.client().list('auth/token/accessors')).body
    const before = await count()
    renameSync(directory, `${directory}-away`)
    const { code, stdout, stderr } = await rootToken()
    renameSync(`${directory}-away`, directory)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('no audit device could be written, so nothing was done')
    expect(await count()).toMatchObject({ data: (before as { data: object }).data })
  })
})
