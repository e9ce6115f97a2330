import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { start, strongroom } from '../cli.ts'
import { createSite, type Site } from '../site.ts'
import { follow } from './shell.ts'

/** A certificate of its own for localhost, as NAME.pem and NAME.key. */
function certify(directory: string, name: string): string {
  const pem = join(directory, `${name}.pem`)
  const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  const files = ['-keyout', join(directory, `${name}.key`), '-out', pem]
  const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  execFileSync('openssl', [...words, ...files, ...names], { stdio: 'ignore' })
  return readFileSync(pem, 'utf8')
}

/** The folders that the document expects, with PIN, certificates and the database's own configuration. */
function furnish(site: Site): { readonly trusted: string } {
  const [etc, log] = [join(site.directory, 'etc/strongroom'), join(site.directory, 'var/log/strongroom')]
  for (const folder of [etc, log]) mkdirSync(folder, { recursive: true })
  writeFileSync(join(etc, 'pin'), `${site.token.pin}\n`, { mode: 0o600 })
  const trusted = join(site.directory, 'trusted.pem')
  writeFileSync(trusted, certify(etc, 'tls') + certify(site.directory, 'new'))
  const socket = new URL(site.database.url).searchParams.get('socketPath')
  writeFileSync(join(site.directory, 'my.cnf'), `[client]\nsocket=${socket}\nuser=root\n`)
  const { library, label } = site.token
  site.configure({
    listeners: [{ address: '127.0.0.1:0', tls: { certificate: join(etc, 'tls.pem'), key: join(etc, 'tls.key') } }],
    pkcs11: { library, token: { label }, pin: { file: join(etc, 'pin') } },
    audit: { directory: log },
    workers: 2,
  })
  return { trusted }
}

test('the commands of docs/operations.md do what they say, in their order', async () => {
  await using site = await createSite()
  const { trusted } = furnish(site)
  const made = JSON.parse((await strongroom(['init', '--json', '--config', site.file])).stdout)
  // As `sed … > unseal-secret` writes it.
  writeFileSync(join(site.directory, 'unseal-secret'), `${made.unseal_secret}\n`)
  await using server = start(['server', '--config', site.file])
  const address = await server.ready()
  const environment = {
    ...{ STRONGROOM_CONFIG: site.file, VAULT_ADDR: address, VAULT_CACERT: trusted, VAULT_TOKEN: made.root_token },
    ...{ DATABASE: new URL(site.database.url).pathname.slice(1), MYSQL_HOME: site.directory },
  }
  const { code, output } = await follow('operations.md', site.directory, environment)
  expect(code, output).toBe(0)
  expect(output).toContain('unbroken')
}, 600_000)
