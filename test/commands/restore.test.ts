import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runDirectory } from '../support/directory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { strongroom } from './cli.ts'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
}, 60_000)
afterAll(() => server?.[Symbol.asyncDispose]())

const run = (...words: string[]) =>
  strongroom([...words, '--config', server.configFile], { SOFTHSM2_CONF: process.env.SOFTHSM2_CONF ?? '' })

/** The place of the schema, as arguments of MariaDB's own programs. */
function place(): string[] {
  const { pathname, searchParams } = new URL(server.database.url)
  return [`--socket=${searchParams.get('socketPath')}`, '--user=root', pathname.slice(1)]
}

const rootIn = (stdout: string): string => /^root_token: +(\S+)$/m.exec(stdout)?.[1] ?? ''
const works = async (token: string) => (await server.client(token).get('sys/mounts')).status

describe('an operator', { shuffle: false }, () => {
  test('goes from a dump, restored under a token that knows more, to a working root', async () => {
    const file = join(mkdtempSync(join(runDirectory(), 'dump-')), 'dump.sql')
    await server.client().post('transit/keys/kept')
    await server.stop()
    writeFileSync(file, execFileSync('mariadb-dump', place(), { maxBuffer: 1 << 28 }))
    await server.start()
    const policy = 'path "transit/*" { capabilities = ["deny"] }'
    expect((await server.client().post('sys/policies/acl/stop', { policy })).status).toBe(204)
    await server.stop()
    execFileSync('mariadb', place(), { input: readFileSync(file) })

    const refused = await run('server')
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('run strongroom accept-restore')
    const { code, stdout, stderr } = await run('accept-restore')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('epoch 2: this database is accepted')
    await server.start()
    expect(await works(server.rootToken)).toBe(403)
    expect(await works(rootIn(stdout))).toBe(200)
    const look = await server.client(rootIn(stdout)).get('auth/token/lookup-self')
    expect(look.body).toMatchObject({ data: { creation_ttl: 3600, policies: ['root'] } })
    expect((await server.client(rootIn(stdout)).get('transit/keys/kept')).status).toBe(200)
  }, 120_000)

  test('accepts nothing where the database is not behind, unless a new epoch is asked for, which voids every token and the recovery secret', async () => {
    const { stdout: made } = await run('root-token')
    expect((await run('recovery-secret')).code).toBe(0)
    expect((await server.client('').post('sys/generate-root/attempt')).status).toBe(200)
    await server.stop()
    const idle = await run('accept-restore')
    expect(idle).toMatchObject({ code: 0 })
    expect(idle.stdout).toMatch(/^epoch 2 continues: .*--new-epoch.*\n$/)
    const { code, stdout, stderr } = await run('accept-restore', '--new-epoch')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('epoch 3: ')
    await server.start()
    expect(await works(rootIn(made))).toBe(403)
    expect(await works(rootIn(stdout))).toBe(200)
    const attempt = await server.client('').post('sys/generate-root/attempt')
    expect({ status: attempt.status, text: attempt.text }).toMatchObject({
      status: 400,
      text: expect.stringContaining('is off'),
    })
    expect((await run('recovery-secret')).code).toBe(0)
    expect((await server.client('').post('sys/generate-root/attempt')).status).toBe(200)
  }, 120_000)

  test('is told of nodes that go on with the old tokens', async () => {
    const { code, stderr } = await run('accept-restore', '--new-epoch')
    expect(code).toBe(0)
    expect(stderr).toContain('workers registered: 1. Restart every running node')
  })

  test('who gets no root token, because no audit device can be written, is told which command makes it then', async () => {
    const directory = mkdtempSync(join(runDirectory(), 'audit-'))
    const options = { file_path: join(directory, 'audit.log') }
    await server.stop()
    await server.start()
    const root = server.client(rootIn((await run('root-token')).stdout))
    expect((await root.post('sys/audit/file', { type: 'file', options })).status).toBe(204)
    await server.stop()
    rmSync(directory, { recursive: true })
    const { code, stdout, stderr } = await run('accept-restore', '--new-epoch')
    expect({ code, root: rootIn(stdout) }).toEqual({ code: 1, root: '' })
    expect(stderr).toMatch(/: run strongroom root-token when the reason is gone\n +because: no audit device/)
    expect((await run('accept-restore')).stdout).toContain('strongroom root-token makes a root token')
    mkdirSync(directory)
    const { stdout: made } = await run('root-token')
    await server.start()
    expect(await works(rootIn(made))).toBe(200)
  }, 120_000)
})
