import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { done, expectRefused, fresh, hello } from '../api/node.ts'
import { openSql, type Sql } from '../attack/sql.ts'
import type { Shim } from '../hsm/support/fault.ts'
import type { Client } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { stateTexts } from '../turns/support/statetexts.ts'
import { createFaulty, createForeign, type Foreign, makeEc, tool } from './tool.ts'

/** The PIN of somebody else's token: tried once, kept wrapped, and shown to nobody. */

const canaries = {
  right: 'PinCanary-right-7c1e5',
  wrong: 'PinCanary-wrong-93ab0',
  next: 'PinCanary-next-x58d2-of-more-than-thirty-two-bytes',
}
let foreign: Foreign
let shim: Shim
let server: TestServer
let sql: Sql
let root: Client
let auditFile: string

beforeAll(async () => {
  foreign = { ...(await createForeign()) }
  await makeEc(foreign, 'ec', '01')
  await tool(foreign, '--change-pin', '--new-pin', canaries.right)
  foreign = { ...foreign, pin: canaries.right }
  const faulty = await createFaulty(foreign)
  shim = faulty.shim
  const { environment } = faulty
  server = await startServer({
    workers: 2,
    config: { log: { level: 'trace' }, pkcs11Libraries: [{ name: 'foreign', library: shim.library, environment }] },
  })
  root = server.client()
  sql = await openSql(server.database.url)
  auditFile = join(foreign.directory, 'audit.log')
  await done(root.post('sys/audit/file', { type: 'file', options: { file_path: auditFile } }))
}, 120_000)
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await sql?.[Symbol.asyncDispose]()
})

const at = (name: string) => `sys/managed-keys/pkcs11/${name}`
const settings = (pin: string) => ({
  ...{ library: 'foreign', token_label: foreign.label, pin, mechanism: '0x1041', key_label: 'ec', any_mount: true },
})
const logins = () => shim.read().logins

/** Each test begins with the token as the one before left it, and the last searches for all PINs used. */
describe('a PIN', { shuffle: false }, () => {
  test('a wrong PIN is refused, remembered, and tried once however often it is sent', async () => {
    const before = logins()
    const name = fresh('mk')
    for (let attempt = 0; attempt < 6; attempt++) {
      const refused = await root.post(at(name), settings(canaries.wrong))
      expectRefused(
        refused,
        400,
        `the token "${foreign.label}" of library foreign refused the PIN; it is not tried again`,
      )
    }
    expect(logins() - before).toBe(1)
    expect((await root.get(at(name))).status).toBe(404)
    await done(root.post(at(name), settings(canaries.right)))
    await done(root.post(`${at(name)}/test/sign`))
  })

  test('a wrong PIN is refused also where the token is open already, and leaves the row as it was', async () => {
    const name = fresh('mk')
    await done(root.post(at(name), settings(canaries.right)))
    await done(root.post(`${at(name)}/test/sign`))
    const before = logins()
    expect((await root.post(at(name), { pin: canaries.wrong })).status).toBe(400)
    expect(logins() - before).toBe(1)
    await done(root.post(`${at(name)}/test/sign`))
  })

  test('a PIN that was given for one token goes to no other', async () => {
    const name = fresh('mk')
    await done(root.post(at(name), settings(canaries.right)))
    for (const change of [{ token_label: 'another' }, { slot: '7' }]) {
      expectRefused(
        await root.post(at(name), change),
        400,
        'library, slot and token_label are changed together with pin',
      )
    }
  })

  test('a PIN that was changed on the token: one try over all workers, 503 for its keys, until it is written again', async () => {
    const name = fresh('mk')
    await done(root.post(at(name), settings(canaries.right)))
    const key = fresh('k')
    await done(root.post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name: name }))
    await tool(foreign, '--change-pin', '--new-pin', canaries.next)
    foreign = { ...foreign, pin: canaries.next }
    await server.stop()
    await server.start()
    const before = logins()
    for (let attempt = 0; attempt < 8; attempt++) {
      const refused = await root.post(`transit/sign/${key}`, { input: hello })
      expectRefused(
        refused,
        503,
        `managed key "${name}": the token refused its PIN, which is not tried again until it is changed`,
      )
    }
    expect(logins() - before).toBe(1)
    expect((await root.get(at(name))).body).toMatchObject({ data: { pin_refused: true, pin: 'redacted' } })
    await done(root.post(`transit/keys/${fresh('k')}`))
    expectRefused(
      await root.post(at(name), { pin: canaries.right }),
      400,
      'the token refused this PIN before; nothing was tried',
    )
    expect(logins() - before).toBe(1)
    await done(root.post(at(name), { pin: canaries.next }))
    for (let attempt = 0; attempt < 6; attempt++) await done(root.post(`transit/sign/${key}`, { input: hello }))
    // PINs of any length come back exactly, though the token pads secrets before it wraps them.
    expect((await root.get(at(name))).body).toMatchObject({ data: { pin_refused: false } })
  }, 60_000)

  test('no PIN is in a log, an answer, a row, an audit line or a file of the state directory', async () => {
    const answers = await Promise.all([
      root.get(at('x')),
      root.list('sys/managed-keys/pkcs11'),
      root.get('sys/metrics'),
    ])
    const tables: string[] = []
    for (const table of await sql.tables()) {
      const rows = await sql.rows(`SELECT * FROM \`${table}\``)
      tables.push(
        JSON.stringify(rows, (_, value) =>
          value?.type === 'Buffer' ? Buffer.from(value.data).toString('latin1') : value,
        ),
      )
    }
    const files = stateTexts(server.stateDirectory)
    const everywhere = {
      log: server.output(),
      answers: answers.map(({ text }) => text).join('\n'),
      database: tables.join('\n'),
      audit: readFileSync(auditFile, 'latin1'),
      state: files.join('\n'),
    }
    expect(everywhere.audit).toContain('managed-keys/pkcs11')
    expect(everywhere.database).toContain('foreign')
    for (const [where, text] of Object.entries(everywhere)) {
      for (const pin of Object.values(canaries)) {
        const digest = createHash('sha256').update(pin).digest()
        const forms = [pin, pin.slice(0, 12), Buffer.from(pin).toString('hex'), Buffer.from(pin).toString('base64')]
        for (const form of [...forms, digest.toString('hex'), digest.toString('latin1')]) {
          expect(text.includes(form), `${where} has ${form}`).toBe(false)
        }
      }
    }
  })
})
