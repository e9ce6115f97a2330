import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MariaDb, startMariaDb } from '../../../scripts/embedded/mariadb.ts'
import { parseConfig } from '../../../src/config.ts'
import { strongroom } from '../../commands/cli.ts'
import { createSite, type Site } from '../../commands/site.ts'
import { runDirectory } from '../../support/directory.ts'
import { open } from '../support.ts'

/** A MariaDB that is reached by TCP and has TLS on. */

let directory: string
let mariadb: MariaDb
let site: Site
let port: number
const at = (name: string): string => join(directory, name)

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { cwd: directory, stdio: 'ignore' })
}
const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
const makeAuthority = (name: string): void =>
  openssl(
    'req',
    '-x509',
    ...curve,
    '-subj',
    `/CN=${name}`,
    '-days',
    '2',
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.pem`,
  )

/** Has an authority sign a certificate; of a negative life, one that has expired. */
function makeCertificate(file: string, { name = 'localhost', authority = 'ours', days = '2' } = {}): void {
  openssl('req', '-new', ...curve, '-subj', `/CN=${file}`, '-keyout', `${file}.key`, '-out', `${file}.csr`)
  writeFileSync(at(`${file}.names`), `subjectAltName=DNS:${name}\n`)
  const signer = ['-CA', `${authority}.pem`, '-CAkey', `${authority}.key`, '-CAcreateserial', '-days', days]
  openssl('x509', '-req', '-in', `${file}.csr`, ...signer, '-extfile', `${file}.names`, '-out', `${file}.pem`)
}

/** Makes the server show a certificate from now on. */
async function show(file: string): Promise<void> {
  for (const kind of ['pem', 'key']) copyFileSync(at(`${file}.${kind}`), at(`server.${kind}`))
  await run('FLUSH SSL')
}

async function run(sql: string): Promise<void> {
  const connection = await createConnection({ uri: mariadb.url, multipleStatements: true })
  await connection.query(sql).finally(() => connection.end())
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const found = (server.address() as AddressInfo).port
      server.close(() => resolve(found))
    })
  })
}

beforeAll(async () => {
  directory = mkdtempSync(join(runDirectory(), 'tls-'))
  for (const name of ['ours', 'other']) makeAuthority(name)
  makeCertificate('right')
  makeCertificate('stranger', { authority: 'other' })
  makeCertificate('misnamed', { name: 'db.example.org' })
  makeCertificate('expired', { days: '-1' })
  for (const kind of ['pem', 'key']) copyFileSync(at(`right.${kind}`), at(`server.${kind}`))
  port = await freePort()
  const tls = [`--ssl-cert=${at('server.pem')}`, `--ssl-key=${at('server.key')}`, `--ssl-ca=${at('ours.pem')}`]
  const args = ['--skip-networking=0', '--bind-address=127.0.0.1', `--port=${port}`, ...tls]
  mariadb = await startMariaDb({ directory: at('db'), schema: 'strongroom', durable: false, args })
  await run("CREATE USER 'far'@'%' IDENTIFIED BY 'geheim' REQUIRE SSL; GRANT ALL ON strongroom.* TO 'far'@'%'")
  await run(
    "CREATE USER 'far'@'localhost' IDENTIFIED BY 'geheim' REQUIRE SSL; GRANT ALL ON strongroom.* TO 'far'@'localhost'",
  )
  site = await createSite()
}, 120_000)
afterAll(async () => {
  await site[Symbol.asyncDispose]()
  await mariadb[Symbol.asyncDispose]()
})

const url = (): string => `mysql://far:geheim@localhost:${port}/strongroom`
const trusted = () => ({ ca: readFileSync(at('ours.pem'), 'utf8') })

test('a certificate of the authority, with the name, is accepted, and the session is encrypted', async () => {
  await show('right')
  const database = await open(url(), { tls: trusted() })
  // The user may connect with TLS alone.
  expect(await database.schemaStatus()).toMatchObject({ state: 'empty' })
  await database[Symbol.asyncDispose]()
})

test.each([
  ['stranger', 'of another authority', /unable to (verify|get)|self.signed/i],
  ['misnamed', 'with another name', /does not match certificate's altnames/],
  ['expired', 'that has expired', /certificate has expired/],
])(
  '%s: a certificate %s is refused with that reason, by the store and by a command',
  async (file, _what, reason) => {
    await show(file)
    await expect(open(url(), { tls: trusted() })).rejects.toMatchObject({
      cause: { message: expect.stringMatching(reason) },
    })
    site.configure({ database: { url: url(), tls: { ca: at('ours.pem') } } })
    const { code, stderr } = await strongroom(['init', '--config', site.file])
    expect([code, stderr]).toEqual([1, expect.stringMatching(reason)])
    expect(stderr).not.toContain('geheim')
    await show('right')
  },
  60_000,
)

test('without TLS this server refuses', async () => {
  await expect(open(url())).rejects.toThrow()
})

test('an address instead of a name is refused with TLS: its certificate could not be checked', () => {
  const parse = (host: string) => () =>
    parseConfig(
      `database: { url: 'mysql://s@${host}/s', tls: {} }\npkcs11: { library: l, token: { slot: 0 }, pin: { prompt: true } }`,
      {},
    )
  for (const host of ['127.0.0.1', '10.0.0.1:3307', '[::1]', 'a/s,mysql://s@10.0.0.2']) {
    expect(parse(host), host).toThrow('must be a host name')
  }
  for (const host of ['db.example.org', 'localhost:3306']) expect(parse(host), host).not.toThrow()
})

test('a connection without TLS that leaves this host is warned about, and no other', async () => {
  const warnings = (database: string) =>
    parseConfig(`database: ${database}\npkcs11: { library: l, token: { slot: 0 }, pin: { prompt: true } }`, {}).warnings
  for (const host of ['db.example.org', '10.0.0.1', '[fe80::1]', 'localhost.example.org']) {
    const name = host.replaceAll(/[[\]]/g, '')
    expect(warnings(`{ url: 'mysql://s@${host}/s' }`)).toEqual([
      expect.stringContaining(`the connection to ${name} has no TLS`),
    ])
  }
  expect(warnings(`{ url: 'mysql://s@a/s,mysql://s@b/s,mysql://s@a:2/s' }`)).toHaveLength(2)
  for (const near of ['localhost', '127.0.0.1', '[::1]', 'far.example.org/s?socketPath=/run/m']) {
    expect(warnings(`{ url: 'mysql://s@${near.includes('/') ? near : `${near}/s`}' }`), near).toEqual([])
  }
  expect(warnings("{ url: 'mysql://s@db.example.org/s', tls: {} }")).toEqual([])
  site.configure({ database: { url: 'mysql://s@db.example.org/s' } })
  const { code, stderr } = await strongroom(['config', 'check', '--config', site.file])
  expect([code, stderr.split('has no TLS').length - 1], stderr).toEqual([0, 1])
})
