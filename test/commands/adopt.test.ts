import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sealedSets } from '../../src/ceremony/sealedtables.ts'
import { type Client, createClient } from '../support/client.ts'
import { createToken, type TestToken } from '../support/token.ts'
import { onTerminal, start, strongroom } from './cli.ts'
import { createSite, type Site } from './site.ts'

const run = promisify(execFile)
const plaintext = Buffer.from('kept').toString('base64')

let site: Site
let sheets: readonly string[]
let rowKey: string
/** The token of the configuration. */
let used: TestToken
/** The cluster's answers before its token died. */
const before: Record<string, string> = {}

beforeAll(async () => {
  site = await createSite()
  sheets = await Promise.all(['a', 'b', 'c', 'd'].map((name) => sheet(name)))
  const init = await command('init', '--kek', 'components', '--component-file', ...sheets.slice(0, 2))
  expect(init.code, init.stderr).toBe(0)
  before.root = /^root_token: +(\S+)$/m.exec(init.stdout)?.[1] ?? ''
}, 120_000)
afterAll(() => site[Symbol.asyncDispose]())

const command = (...words: string[]) => strongroom([...words, '--config', site.file])

async function sheet(name: string): Promise<string> {
  const file = resolve(site.directory, name)
  const { code, stdout, stderr } = await command('kek', 'component')
  expect(code, stderr).toBe(0)
  writeFileSync(file, stdout, { mode: 0o600 })
  return file
}

/** Serves while `work` is done with a client of this token. */
async function serving(token: string, work: (client: Client) => Promise<void>): Promise<void> {
  await using server = start(['server', '--config', site.file])
  const address = await server.ready()
  await work(createClient(() => address, token))
  server.process.kill('SIGTERM')
  expect(await server.ended).toBe(0)
}

function useToken(token: TestToken, more: object = {}): void {
  const { library, label, pin } = token
  used = token
  writeFileSync(site.pinFile, `${pin}\n`)
  const environment = { SOFTHSM2_CONF: process.env.SOFTHSM2_CONF }
  site.configure({ pkcs11: { library, token: { label }, pin: { file: site.pinFile }, environment }, ...more })
}

/** Our objects in a token: KEKs and anchors. */
async function objectsIn({ library, label, pin }: TestToken): Promise<string[]> {
  const words = ['--module', library, '--token-label', label, '--login', '--pin', pin, '--list-objects']
  const { stdout } = await run('pkcs11-tool', words)
  return stdout.split('\n').filter((line) => /^\s*(label|application):.*strongroom/.test(line))
}

async function removeFrom({ library, label, pin }: TestToken, name: string): Promise<void> {
  const words = ['--module', library, '--token-label', label, '--login', '--pin', pin, '--label', name]
  await run('pkcs11-tool', [...words, '--delete-object', '--type', 'secrkey'])
}

const sql = async (statement: string): Promise<readonly RowDataPacket[]> => {
  const connection = await createConnection(site.database.url)
  const [rows] = await connection.query<RowDataPacket[]>(statement).finally(() => connection.end())
  return rows
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 1000))
}

/** Makes keys of every residence, and ciphertexts and signatures with them. */
async function fill(client: Client): Promise<void> {
  for (const [name, body] of Object.entries({
    wrapped: {},
    enveloped: { type: 'ed25519' },
    leaving: { exportable: true },
  })) {
    expect((await client.post(`transit/keys/${name}`, body)).status, name).toBe(200)
  }
  for (const name of ['wrapped', 'leaving']) {
    before[name] = (await client.post(`transit/encrypt/${name}`, { plaintext })).string('data.ciphertext')
  }
  before.signature = (await client.post('transit/sign/enveloped', { input: plaintext })).string('data.signature')
  const root = { common_name: 'Root', key_type: 'ec', issuer_name: 'root', key_name: 'kept', ttl: '8760h' }
  expect((await client.post('pki/root/generate/internal', root)).status).toBe(200)
  const lone = { ...root, common_name: 'Lone', issuer_name: 'lone', key_name: 'alone', residence: 'token' }
  expect((await client.post('pki/root/generate/internal', lone)).status).toBe(200)
  const role = { allow_any_name: true, key_type: 'ec', ttl: '1h' }
  expect((await client.post('pki/roles/web', { ...role, issuer_ref: 'root' })).status).toBe(200)
  expect((await client.post('pki/roles/lost', { ...role, issuer_ref: 'lone' })).status).toBe(200)
}

/** Two custodians bring another use KEK, and the one before retires. @returns its id */
async function rotateUse(client: Client, files = sheets.slice(2)): Promise<string> {
  const announced = await command('kek', 'rotate', '--purpose', 'use', '--components')
  const id = /announced: use KEK (\S+)/.exec(announced.stdout)?.[1] ?? ''
  const adopted = await command('kek', 'adopt', id, '--component-file', ...files)
  expect(adopted, adopted.stderr).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(new RegExp(`^this token holds the use KEK ${id}, check value [0-9a-f]{16}\n$`)),
  })
  await until(async () => {
    expect((await client.get('sys/health')).status).toBe(200)
    const { keks } = JSON.parse((await command('kek', 'status', '--json')).stdout)
    return keks.some(({ id: one, state }: Record<string, string>) => one === id && state === 'active')
  })
  return id
}

/** Until nothing is under the retiring use KEK any more. */
const emptied = () =>
  until(async () => {
    const { keks } = JSON.parse((await command('kek', 'status', '--json')).stdout)
    return keks.every(({ state, keys }: { state: string; keys: number }) => state !== 'retiring' || keys === 0)
  })

/** The sheets with other lines in the place of the first use KEK's, which has been replaced. */
async function withoutFirstUse(): Promise<readonly string[]> {
  const useLine = /^use .*$/m
  const partial = async (file: string): Promise<string> => {
    const name = `${file}-partial`
    const [line = ''] = useLine.exec(readFileSync(await sheet(`${file}-other`), 'utf8')) ?? []
    writeFileSync(name, readFileSync(file, 'utf8').replace(useLine, line), { mode: 0o600 })
    return name
  }
  return [...(await Promise.all(sheets.slice(0, 2).map(partial))), ...sheets.slice(2)]
}

const adopt = (token: string, files = sheets, ...more: string[]) =>
  command('kek', 'adopt', '--row-key', token, '--component-file', ...files, ...more)

/** The same with a check value that is typed at the question, as an operator reads it from paper. */
const adoptTyping = (typed: string, files = sheets, ...more: string[]) => {
  const words = ['kek', 'adopt', '--config', site.file, '--component-file', ...files, ...more]
  return onTerminal(words, [['check value of the row key: ', typed]])
}

describe('a cluster whose token dies', { shuffle: false }, () => {
  test('says in good days what will be needed, and what would be lost', async () => {
    await serving(before.root ?? '', async (client) => {
      await fill(client)
      await rotateUse(client)
      await emptied()
    })
    const { stdout } = await command('kek', 'status')
    expect(stdout).toMatch(/^row key +check value (?:[0-9a-f]{4} ){7}[0-9a-f]{4}, keep it/)
    expect(stdout.match(/from components, in this token, /g)).toHaveLength(5)
    expect(stdout).toContain('only in this token: pki/ key alone (ecdsa-p256)')
    expect(stdout).not.toContain('These KEKs have no components')
    rowKey = JSON.parse((await command('kek', 'status', '--json')).stdout).rowKey
  }, 180_000)

  test('is refused by a new token, which is told how it comes back', async () => {
    await run('softhsm2-util', ['--delete-token', '--token', site.token.label])
    useToken(await createToken('second'))
    const { code, stderr } = await command('server')
    expect(code).toBe(1)
    expect(stderr).toContain('strongroom kek adopt')
  }, 60_000)

  test('is not adopted by what does not fit, and nothing is left in the token', async () => {
    const token = await createToken('third')
    useToken(token)
    const digit = rowKey.startsWith('0') ? '1' : '0'
    const wrong = await adoptTyping(digit + rowKey.slice(1))
    expect(wrong.code).toBe(1)
    expect(wrong.shown).toContain('the row key of this database has another check value')
    expect(wrong.shown).not.toContain(rowKey.slice(1))
    const empty = await adoptTyping('')
    expect(empty.code).toBe(1)
    expect(empty.shown).toContain('32 hexadecimal digits')
    expect((await adopt('1234')).stderr).toContain('32 hexadecimal digits')
    const old = await adopt(rowKey, sheets.slice(0, 2))
    expect(old.stderr).toMatch(/do not make the active use KEK \S+, whose check value is [0-9a-f]{16}\n/)
    expect((await adopt(rowKey, [...sheets.slice(1), await sheet('e')])).stderr).toContain('do not make the')
    expect((await adopt(rowKey, sheets.slice(0, 1))).stderr).toContain('two custodians')
    await sql('UPDATE policies SET text = \'path "*" { capabilities = ["sudo"] }\' WHERE name = \'default\'')
    const edited = await adopt(rowKey)
    expect(edited).toMatchObject({ code: 1, stdout: '' })
    expect(edited.stderr).toMatch(/damaged rows: 1, .*\n +policies \S+: the seal is broken/)
    expect(await objectsIn(token)).toEqual([])
  }, 120_000)

  test('is not adopted without the head of any of its sets, which a worker would begin anew', async () => {
    const token = await createToken('headless')
    useToken(token)
    const heads = (await sql('SELECT `set` FROM heads')).map((row) => String(row.set))
    expect(sealedSets.map(({ set }) => set).toSorted()).toEqual(heads.toSorted())
    await sql('CREATE TABLE kept_heads AS SELECT * FROM heads')
    await sql("DELETE FROM heads WHERE `set` <> 'keks'")
    const { code, stdout, stderr } = await adopt(rowKey)
    await sql("INSERT INTO heads SELECT * FROM kept_heads WHERE `set` <> 'keks'")
    await sql('DROP TABLE kept_heads')
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    for (const set of heads) {
      if (set !== 'keks') expect(stderr).toContain(`heads ${set}: the head of the set is missing`)
    }
    expect(await objectsIn(token)).toEqual([])
  }, 60_000)

  test('is not adopted by a token that serves another cluster, unless it is said to be shared', async () => {
    await using other = await createSite()
    expect((await strongroom(['init', '--config', other.file])).code).toBe(0)
    useToken(other.token)
    expect((await adopt(rowKey)).stderr).toMatch(/is not empty: it holds keys of cluster \S+ \(--shared/)
    const shared = await adopt(rowKey, sheets, '--shared')
    expect(shared.stderr).toContain('damaged rows: 1,')
    expect(await objectsIn(other.token)).toHaveLength(5)
    useToken(await createToken('other'), { database: { url: other.database.url } })
    expect((await adopt(rowKey)).stderr).toContain('the database is of another cluster')
  }, 120_000)

  test('comes back in an empty token: it serves, decrypts, issues and signs lists, and names what is lost', async () => {
    const token = await createToken('fourth')
    useToken(token)
    // The first use KEK retires with nothing under it: its envelopes may be gone.
    const { code, shown } = await adoptTyping(rowKey, await withoutFirstUse(), '--damaged')
    expect(code, shown).toBe(0)
    expect(shown).not.toContain(rowKey)
    const stdout = shown.replaceAll('\r', '')
    expect(stdout.match(/^made: .*$/gm)).toHaveLength(4)
    expect(stdout).toMatch(/^verified: \d{2,} rows$/m)
    expect(stdout).toMatch(/^damaged: policies \S+: the seal is broken$/m)
    expect(stdout).toMatch(/^lost with its token: pki\/ key alone \(ecdsa-p256\)$/m)
    expect(stdout).toMatch(/^epoch 2: this token holds cluster /m)
    expect(await objectsIn(token)).toHaveLength(5)
    await serving(/^root_token: +(\S+)$/m.exec(stdout)?.[1] ?? '', async (client) => {
      const look = await client.get('auth/token/lookup-self')
      expect(look.body).toMatchObject({ data: { creation_ttl: 3600, policies: ['root'] } })
      await afterwards(client)
    })
    await serving(before.root ?? '', async (client) => {
      expect((await client.get('transit/keys/wrapped')).status).toBe(403)
    })
    const again = await adopt(rowKey)
    expect(again.stderr).toContain('remembers this cluster already')
  }, 180_000)

  test('is brought into a token by one of two who do it at once; the other changes nothing there', async () => {
    const token = await createToken('fifth')
    useToken(token)
    const both = await Promise.all([adopt(rowKey, sheets, '--damaged'), adopt(rowKey, sheets, '--damaged')])
    const [one, other] = both.toSorted((a, b) => (a.code ?? 0) - (b.code ?? 0))
    expect(one?.code, one?.stderr).toBe(0)
    expect(other).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('remembers this cluster already'),
    })
    expect(await objectsIn(token)).toHaveLength(5)
    const { stdout } = await command('kek', 'status')
    expect(stdout.match(/from components, in this token, /g)).toHaveLength(4)
  }, 120_000)

  test('a token that missed a ceremony is told so, and gets every KEK that it lacks from its components', async () => {
    const behind = await createToken('sixth')
    useToken(behind)
    expect((await adopt(rowKey, sheets, '--damaged', '--join')).code).toBe(0)
    const ahead = await createToken('seventh')
    useToken(ahead)
    expect((await adopt(rowKey, sheets, '--damaged', '--join')).code).toBe(0)
    const root = /^root_token: +(\S+)$/m.exec((await command('root-token')).stdout)?.[1] ?? ''
    const later = [await sheet('f'), await sheet('g')]
    let id = ''
    await serving(root, async (client) => {
      await rotateUse(client, [await sheet('h'), await sheet('i')])
      await emptied()
      id = await rotateUse(client, later)
      await emptied()
    })
    useToken(behind)
    const refused = await command('server')
    expect(refused.stderr).toContain(`the use KEK ${id} is not in the token`)
    const wrong = await command('kek', 'adopt', id, '--component-file', ...sheets.slice(2))
    expect(wrong).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('do not make the active use') })
    await removeFrom(behind, 'strongroom export')
    const unknown = await command('kek', 'adopt', randomUUID(), '--component-file', ...later)
    expect(unknown).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('there is no KEK') })
    expect(await objectsIn(behind)).toHaveLength(4)
    // Again, when the token has them.
    for (const [times, said] of ['this token holds the export KEK \\S+, check value [0-9a-f]{16}\n', ''].entries()) {
      const adopted = await command('kek', 'adopt', id, '--component-file', ...later, ...sheets.slice(0, 2))
      const stdout = expect.stringMatching(
        new RegExp(`^${said}this token holds the use KEK ${id}, check value [0-9a-f]{16}\n$`),
      )
      expect(adopted, `${times} ${adopted.stderr}`).toMatchObject({ code: 0, stdout })
      expect(await objectsIn(behind)).toHaveLength(6)
    }
    await serving(root, afterwards)
  }, 240_000)

  test('a KEK that another run made while custodians were still typing is not made again', async () => {
    const kek = /^export +active +(\S+)/m.exec((await command('kek', 'status')).stdout)?.[1] ?? ''
    const held = await objectsIn(used)
    await removeFrom(used, 'strongroom export')
    const typed = (file: string) => /^export (.*)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? ''
    const [first = '', second = ''] = sheets
    const byFiles = ['kek', 'adopt', kek, '--component-file', first, second]
    const { code, shown } = await onTerminal(
      ['kek', 'adopt', kek, '--config', site.file, '--custodians', '2'],
      [
        ['custodian 1, export', typed(first)],
        [
          'custodian 2, export',
          async () => {
            expect(await command(...byFiles)).toMatchObject({ code: 0, stderr: '' })
            return typed(second)
          },
        ],
      ],
    )
    expect(code, shown).toBe(0)
    expect(shown).toContain(`this token holds the export KEK ${kek}, check value `)
    expect((await objectsIn(used)).toSorted()).toEqual(held.toSorted())
  }, 60_000)
})

/** The verdict of openssl on a leaf, with its issuer's list. */
async function verified(leaf: string, issuer: string, crl: string): Promise<string> {
  const files = { leaf, issuer, crl }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(site.directory, name), `${text}\n`)
  const words = ['verify', '-crl_check', '-CAfile', 'issuer', '-CRLfile', 'crl', 'leaf']
  return (await run('openssl', words, { cwd: site.directory })).stdout
}

async function afterwards(client: Client): Promise<void> {
  for (const name of ['wrapped', 'leaving']) {
    const { string } = await client.post(`transit/decrypt/${name}`, { ciphertext: before[name] })
    expect(string('data.plaintext')).toBe(plaintext)
  }
  expect((await client.get('transit/export/encryption-key/leaving')).status).toBe(200)
  const signed = { input: plaintext, signature: before.signature }
  expect((await client.post('transit/verify/enveloped', signed)).body).toMatchObject({ data: { valid: true } })
  expect((await client.post('transit/sign/enveloped', { input: plaintext })).status).toBe(200)
  const issued = await client.post('pki/issue/web', { common_name: 'www.example.com' })
  expect(issued.status, issued.text).toBe(200)
  const listed = await client.post('pki/issuer/root/sign-revocation-list', { crl_number: 1 })
  expect(listed.status, listed.text).toBe(200)
  expect(
    await verified(issued.string('data.certificate'), issued.string('data.issuing_ca'), listed.string('data.crl')),
  ).toBe('leaf: OK\n')
  const lost = await client.post('pki/issue/lost', { common_name: 'www.example.com' })
  expect({ status: lost.status, body: lost.body }).toEqual({
    status: 400,
    body: {
      errors: [
        expect.stringMatching(
          /^version 1 of this key lives in the token with serial \S+ alone, not in the token \S+ of this server$/,
        ),
      ],
    },
  })
  expect((await client.post('transit/keys/new')).status).toBe(200)
}
