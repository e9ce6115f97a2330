import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { base64, done, expectRefused, fresh, hello } from '../api/node.ts'
import { openSql, type Sql } from '../attack/sql.ts'
import type { Reply } from '../support/client.ts'
import { runDirectory } from '../support/directory.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { createForeign, type Foreign, makeAes, makeEc, tool } from './tool.ts'

/** A token can be named in several ways; none of them may reach the token with the server's own keys. */

let closed: TestServer
let open: TestServer
let foreign: Foreign
let libraries: { name: string; library: string; environment?: Readonly<Record<string, string>> }[]

beforeAll(async () => {
  const directory = mkdtempSync(join(runDirectory(), 'guards-'))
  const module = '/usr/lib/softhsm/libsofthsm2.so'
  const [link, copy] = [join(directory, 'liblink.so'), join(directory, 'libcopy.so')]
  symlinkSync(module, link)
  copyFileSync(module, copy)
  foreign = await createForeign()
  await makeEc(foreign, 'ec', '01')
  libraries = [
    { name: 'same', library: module },
    { name: 'link', library: link },
    { name: 'copy', library: copy },
    { name: 'other', library: foreign.library, environment: foreign.environment },
  ]
  closed = await startServer({ config: { pkcs11Libraries: libraries } })
  open = await startServer({
    config: { pkcs11Libraries: libraries },
    environment: { STRONGROOM_PKCS11_MANAGED_KEYS: 'true' },
  })
}, 180_000)
afterAll(async () => {
  await closed?.[Symbol.asyncDispose]()
  await open?.[Symbol.asyncDispose]()
})

const run = promisify(execFile)
const at = (name: string) => `sys/managed-keys/pkcs11/${name}`
const refusalOf = (reply: Reply) => [reply.status, reply.text]
const ec = { mechanism: '0x1041', key_label: 'ec', any_mount: true }
const ownOf = (server: TestServer) => ({ token_label: server.token.label, pin: server.token.pin, ...ec })

async function slotOf(label: string): Promise<string> {
  const { stdout } = await run('softhsm2-util', ['--show-slots'])
  const slot = new RegExp(`Slot (\\d+)\\n(?:(?!Slot ).*\\n)*?\\s+Label:\\s+${label}\\s`).exec(stdout)?.[1]
  if (slot === undefined) throw new Error(`no slot of ${label}`)
  return slot
}

/** The token's flag about wrong PINs: set from the first one to the next right one. */
const warned = async (token: TestServer['token']): Promise<boolean> => {
  const { stdout } = await run('pkcs11-tool', ['--module', token.library, '--list-slots'])
  const ours = stdout.split(/^Slot /m).find((slot) => slot.includes(token.label)) ?? ''
  return /user PIN count low|final user PIN try|user PIN locked/.test(ours)
}

describe('the token of the server’s own keys, unless the configuration allows it', () => {
  test.each(['same', 'link', 'copy'])('is refused by its label in the library "%s"', async (library) => {
    const refused = await closed.client().post(at(fresh('mk')), { library, ...ownOf(closed) })
    expect(refusalOf(refused)).toEqual([400, expect.stringContaining('this token holds the server’s own keys')])
  })

  test('is refused by its slot number', async () => {
    const slot = await slotOf(closed.token.label)
    for (const library of ['same', 'link', 'copy']) {
      const { pin } = closed.token
      const refused = await closed.client().post(at(fresh('mk')), { library, slot, pin, ...ec })
      expect(refusalOf(refused)).toEqual([400, expect.stringContaining('this token holds the server’s own keys')])
    }
  })

  test('sees no PIN: twenty wrong ones by every way do not come near it', async () => {
    const slot = await slotOf(closed.token.label)
    for (let attempt = 0; attempt < 7; attempt++) {
      for (const library of ['same', 'link', 'copy']) {
        const where = attempt % 2 === 0 ? { token_label: closed.token.label } : { slot }
        const refused = await closed
          .client()
          .post(at(fresh('mk')), { library, ...where, ...ec, pin: `wrong${attempt}` })
        expect(refused.status).toBe(400)
      }
    }
    expect(await warned(closed.token)).toBe(false)
    await done(closed.client().post(`transit/keys/${fresh('k')}`))
  }, 60_000)

  test('is known by its KEKs where it has another serial number and label', async () => {
    const sql: Sql = await openSql(closed.database.url)
    const [kek] = await sql.rows("SELECT HEX(cka_id) AS id FROM keks WHERE purpose = 'use'")
    await sql[Symbol.asyncDispose]()
    const clone = await createForeign(fresh('c'))
    await makeEc(clone, 'ec', '01')
    await makeAes(clone, 'strongroom use', String(kek?.id))
    const config = { pkcs11Libraries: [{ name: 'clone', library: clone.library, environment: clone.environment }] }
    await using node = await startServer({ joins: closed, config })
    const settings = { library: 'clone', token_label: clone.label, pin: clone.pin, ...ec }
    const refused = await node.client().post(at(fresh('mk')), settings)
    expect(refusalOf(refused)).toEqual([
      400,
      expect.stringContaining('holds keys of the server itself, under another name'),
    ])
  }, 60_000)
})

describe('in a token of its own keys that the configuration opens to managed keys', () => {
  const own = (more: Readonly<Record<string, unknown>>) => ({ library: 'same', ...ownOf(open), ...more })
  const ofServer = 'the object is a key of the server itself'

  test('a foreign key serves; under another PIN it does not, and the token is not called', async () => {
    await makeEc(open.token, 'ec', 'e0')
    const name = fresh('mk')
    await done(open.client().post(at(name), own({})))
    const key = fresh('k')
    await done(open.client().post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name: name }))
    await done(open.client().post(`transit/sign/${key}`, { input: hello }))
    for (const library of ['same', 'link', 'copy']) {
      const wrong = await open.client().post(at(fresh('mk')), own({ library, pin: 'wrong1' }))
      expectRefused(wrong, 400, 'wrong PIN; it is not tried again')
    }
    expect(await warned(open.token)).toBe(false)
  })

  test.each(['use', 'export', 'open', 'system'])(
    'the %s KEK is refused by its label, for every mechanism',
    async (purpose) => {
      for (const mechanism of ['0x1087', '0x1085']) {
        const refused = await open
          .client()
          .post(at(fresh('mk')), own({ mechanism, key_label: `strongroom ${purpose}` }))
        expect(refusalOf(refused)).toEqual([400, expect.stringContaining(ofServer)])
      }
    },
  )

  test('KEKs are refused by their ids, however these are written', async () => {
    const sql = await openSql(open.database.url)
    const rows = await sql.rows('SELECT HEX(cka_id) AS id FROM keks')
    await sql[Symbol.asyncDispose]()
    expect(rows).toHaveLength(4)
    for (const { id } of rows) {
      for (const key_id of [String(id), `0x${id}`, String(id).toLowerCase(), `0X${String(id).toUpperCase()}`]) {
        const settings = own({ mechanism: '0x1087', key_label: '', key_id })
        const refused = await open.client().post(at(fresh('mk')), settings)
        expectRefused(refused, 400, 'key_id begins as the ids of the server’s own keys do')
      }
    }
  })

  test('a label that is changed to a KEK’s afterwards is refused at the next use', async () => {
    await makeAes(open.token, 'aes', 'e1')
    const name = fresh('mk')
    await done(open.client().post(at(name), own({ mechanism: '0x1087', key_label: 'aes' })))
    const key = fresh('k')
    await done(open.client().post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name: name }))
    await done(open.client().post(at(name), { key_label: 'strongroom use' }))
    for (const verb of ['encrypt', 'decrypt'] as const) {
      const body = { plaintext: hello, ciphertext: `vault:v1:${base64(Buffer.alloc(64))}` }
      const refused = await open.client().post(`transit/${verb}/${key}`, body)
      expect(refusalOf(refused)).toEqual([400, expect.stringContaining(ofServer)])
    }
    const rotated = await open.client().post(`transit/keys/${key}/rotate`, { managed_key_name: name })
    expect(refusalOf(rotated)).toEqual([400, expect.stringContaining(ofServer)])
  })

  test('a key is never generated beside one of ours under its label', async () => {
    const name = fresh('mk')
    const settings = own({
      key_label: 'strongroom use',
      allow_generate_key: true,
      allow_replace_key: true,
      curve: 'P256',
    })
    await done(open.client().post(at(name), settings))
    await done(open.client().post(`${at(name)}/test/sign`))
    // The KEK is a secret key and stays the only one of its label; the server opens its keys with it as before.
    const objects = await tool(open.token, '--list-objects', '--type', 'secrkey', '--label', 'strongroom use')
    expect(objects.match(/label:\s+strongroom use/g)).toHaveLength(1)
    await open.stop()
    await open.start()
    await done(open.client().post(`transit/keys/${fresh('k')}`))
  }, 60_000)

  test('the anchor is not a key: data objects are not found', async () => {
    const { body } = await open.client().get('sys/health')
    const label = (body as { cluster_id: string }).cluster_id
    for (const mechanism of ['0x1041', '0x1', '0x9', '0x1087']) {
      const name = fresh('mk')
      await done(open.client().post(at(name), own({ mechanism, key_label: label })))
      const made = await open
        .client()
        .post(`transit/keys/${fresh('k')}`, { type: 'managed_key', managed_key_name: name })
      expect(refusalOf(made)).toEqual([400, expect.stringContaining('the token has no key with label')])
    }
  })

  test('two objects with one label are refused until an id tells them apart', async () => {
    await makeEc(open.token, 'twin', 'e2')
    await makeEc(open.token, 'twin', 'e3')
    const refused = await open.client().post(at(fresh('mk')), own({ key_label: 'twin' }))
    expect(refusalOf(refused)).toEqual([
      400,
      expect.stringContaining('2 objects of the token fit; name one by label and id'),
    ])
    await done(open.client().post(at(fresh('mk')), own({ key_label: 'twin', key_id: 'e3' })))
  })
})

describe('a public key that was put beside another private key', () => {
  test('is found out before a version is made of it', async () => {
    const { libraries: _, ...config } = { libraries, pkcs11Libraries: libraries }
    await using node = await startServer({ joins: closed, config })
    await makeEc(foreign, 'first', '21')
    await makeEc(foreign, 'second', '22')
    await tool(foreign, '--delete-object', '--type', 'pubkey', '--id', '21')
    const der = join(foreign.directory, 'second.der')
    await tool(foreign, '--read-object', '--type', 'pubkey', '--id', '22', '--output-file', der)
    await tool(foreign, '--write-object', der, '--type', 'pubkey', '--id', '21', '--label', 'first')
    const name = fresh('mk')
    const settings = { library: 'other', token_label: foreign.label, pin: foreign.pin, ...ec, key_label: 'first' }
    await done(node.client().post(at(name), settings))
    const made = await node.client().post(`transit/keys/${fresh('k')}`, { type: 'managed_key', managed_key_name: name })
    expectRefused(made, 400, `managed key "${name}": the key in the token does not fit its public key`)
  }, 60_000)
})

describe('in strict mode', () => {
  test('a managed key that the token would let leave is refused', async () => {
    const loose = await createForeign(fresh('l'))
    await tool(loose, '--keygen', '--key-type', 'AES:32', '--label', 'loose', '--id', '01', '--extractable')
    await makeEc(loose, 'ec', '02')
    const config = {
      strict: true,
      pkcs11Libraries: [{ name: 'loose', library: loose.library, environment: loose.environment }],
    }
    await using node = await startServer({ config })
    const settings = { library: 'loose', token_label: loose.label, pin: loose.pin, any_mount: true }
    const refused = await node.client().post(at(fresh('mk')), { ...settings, mechanism: '0x1087', key_label: 'loose' })
    expect(refusalOf(refused)).toEqual([
      400,
      expect.stringContaining('strict mode: the token would let this key leave'),
    ])
    const name = fresh('mk')
    await done(node.client().post(at(name), { ...settings, ...ec }))
    await done(node.client().post(`${at(name)}/test/sign`))
  }, 60_000)
})
