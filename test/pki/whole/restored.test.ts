import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { expectServed, until } from '../../attack/nodes.ts'
import { openSql, type Row } from '../../attack/sql.ts'
import { strongroom } from '../../commands/cli.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { type Answer, dataOf } from '../api/authority.ts'
import { ocspStatus, readList } from './relying.ts'

/** Rows that somebody with access to the database puts back or takes away. */

let server: TestServer
let ca = ''
beforeAll(async () => {
  server = await startServer()
  await post('sys/mounts/pki/tune', { max_lease_ttl: '87600h' })
  ca = String(
    (await post('pki/root/generate/internal', { common_name: 'R', key_type: 'ec', ttl: '80000h' })).certificate,
  )
  await post('pki/roles/r', { allow_any_name: true, key_type: 'ec' })
}, 60_000)
afterAll(() => server?.[Symbol.asyncDispose]())

async function post(path: string, body = {}): Promise<Answer> {
  const reply = expectServed(await server.client().post(path, body))
  return reply.body === undefined ? {} : dataOf(reply)
}
const plain = (serial: unknown): string => String(serial).replaceAll(':', '').replace(/^0+/, '')
async function revoke(): Promise<string> {
  const { serial_number: serial } = await post('pki/issue/r', { common_name: 'a.example', ttl: '24h' })
  await post('pki/revoke', { serial_number: serial })
  return String(serial)
}
async function list() {
  const { number, serials } = await readList(expectServed(await server.client('').get('pki/crl/pem')).text, ca)
  return { number, serials: serials.map(plain) }
}
const rotate = async (): Promise<void> => void expectServed(await server.client().get('pki/crl/rotate'))
const status = (serial: string) => ocspStatus(`${server.url}/v1/pki/ocsp`, ca, serial)

function access(): readonly string[] {
  const [source] = parseTargets(server.database.url)
  return ['--no-defaults', '-uroot', `-S${source?.socketPath}`, String(source?.schema)]
}

/** The list is complete, or none is served: never a shorter one. */
async function expectNoneMissing(serials: readonly string[], about: string): Promise<void> {
  const reply = await server.client('').get('pki/crl/pem')
  if (reply.status === 200) expect((await list()).serials, about).toEqual(serials.map(plain))
  expect(await status(serials[0] ?? '').catch(() => 'no answer'), about).not.toBe('good')
}
async function restart(): Promise<void> {
  await server.stop()
  await server.start()
}

describe('a database', { shuffle: false }, () => {
  test('rows deleted or put back by SQL make no list shorter: at once, over a restart, and when lists are rotated', async () => {
    await using sql = await openSql(server.database.url)
    const serials = [await revoke(), await revoke(), await revoke()]
    const rowsOf = (table: string) => sql.rows(`SELECT * FROM ${table}`)
    const putBack = async (table: string, rows: readonly Row[]): Promise<void> => {
      await sql.rows(`DELETE FROM ${table}`)
      for (const row of rows) await sql.put(table, row)
    }
    const [lists, manifests] = [await rowsOf('pki_crls'), await rowsOf('pki_manifests')]
    serials.push(await revoke())
    let sound: readonly Row[] = []
    const attacks = {
      'a revocation is deleted': () => sql.rows('DELETE FROM pki_revocations WHERE seq = 1'),
      'a list is replaced by an older one': () => putBack('pki_crls', lists),
      'a manifest is put back': async () => {
        sound = await rowsOf('pki_manifests')
        await putBack('pki_manifests', manifests)
      },
    }
    for (const [name, attack] of Object.entries(attacks)) {
      await attack()
      await expectNoneMissing(serials, name)
      await restart()
      await expectNoneMissing(serials, `${name}, restarted`)
      await server.client().get('pki/crl/rotate')
      await expectNoneMissing(serials, `${name}, rotated`)
    }
    await putBack('pki_manifests', sound)
    await restart()
    expectServed(await server.client().get('pki/crl/rotate'))
    expect((await list()).serials).toEqual(serials.map(plain))
  }, 180_000)

  test('a database put back to yesterday: once it is accepted, numbers are far ahead of all that were given', async () => {
    const dump = execFileSync('mariadb-dump', [...access()], { maxBuffer: 1e9 })
    const before = await list()
    await revoke()
    await rotate()
    const last = await list()
    expect(last.number).toBeGreaterThan(before.number)
    await server.stop()
    execFileSync('mariadb', [...access()], { input: dump })
    await expect(server.start()).rejects.toThrow(/behind|gone back|at change/)
    expect((await strongroom(['accept-restore', '--config', server.configFile])).stdout).toContain('epoch 2')
    await using sql = await openSql(server.database.url)
    // All tokens are void: nobody can rotate, but a missing list is built automatically.
    await sql.rows('DELETE FROM pki_crls')
    await server.start()
    await until(async () => (await server.client('').get('pki/crl/pem')).status === 200)
    const after = await list()
    expect(after.number).toBeGreaterThan(last.number + 2n ** 31n)
    expect(after.serials).toEqual(before.serials)
  }, 120_000)
})
