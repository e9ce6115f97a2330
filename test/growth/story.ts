import { execFileSync } from 'node:child_process'
import { createPublicKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { listRoutes } from '../../src/engines/pki/routes/lists/table.ts'
import { readCertificate } from '../../src/x509/certificate.ts'
import { base64 } from '../api/node.ts'
import { envelopeOf } from '../api/transit/envelope.ts'
import type { Client, Reply } from '../support/client.ts'
import { runDirectory } from '../support/directory.ts'
import type { TestServer } from '../support/server.ts'
import type { TestToken } from '../support/token.ts'
import { writeOcspRequest } from '../x509/ocspasking.ts'
import { refusedCounters, tellPolled } from './polled.ts'
import { tellSettings } from './settings.ts'

type Body = Readonly<Record<string, unknown>>

/** No other auth method can be enabled or tuned yet, and a cluster is made once. */
const alwaysRefused = ['POST sys/auth/:path*', 'POST sys/auth/:path*/tune', 'POST sys/init', ...refusedCounters]

/** A client that remembers which routes it has used. */
export class Teller {
  readonly told = new Set<string>()
  readonly refusals: string[] = []
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
  }

  /** Calls a route, `METHOD path` with its parameters filled in. */
  async tell(route: string, values: Body = {}, body?: Body | Buffer): Promise<Reply> {
    this.told.add(route)
    const [method = '', path = ''] = route.split(' ')
    const filled = path.replace(/:(\w+)\*{0,2}/g, (_, name: string) => String(values[name]))
    const takesBody = method === 'POST' || method === 'PATCH'
    const query = new URLSearchParams(takesBody ? {} : (body as Record<string, string>))
    const reply = takesBody
      ? await this.#client.call(method, filled, body ?? {})
      : await this.#client.call(method, query.size > 0 ? `${filled}?${query}` : filled)
    if (reply.status >= 300 && !alwaysRefused.includes(route))
      this.refusals.push(`${method} ${filled}: ${reply.status} ${reply.text}`)
    return reply
  }
}

const input = base64('hello')

/** A key pair from outside, and a certificate over it. */
function stranger(): { key: Buffer; publicKey: string; certificate: string } {
  const directory = mkdtempSync(join(runDirectory(), 'stranger-'))
  const [key, certificate] = [join(directory, 'key.der'), join(directory, 'cert.pem')]
  const pem = join(directory, 'key.pem')
  const quiet = { stdio: 'pipe' } as const
  const made = [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-subj',
    '/CN=x',
    '-days',
    '2',
    '-addext',
    'basicConstraints=CA:FALSE',
  ]
  execFileSync('openssl', [...made, '-keyout', pem, '-out', certificate], quiet)
  execFileSync('openssl', ['pkcs8', '-topk8', '-nocrypt', '-in', pem, '-outform', 'DER', '-out', key], quiet)
  const publicKey = createPublicKey(readFileSync(pem)).export({ type: 'spki', format: 'pem' }).toString()
  return { key: readFileSync(key), publicKey, certificate: readFileSync(certificate, 'utf8') }
}

/** Every route of Transit. */
export async function tellTransit(teller: Teller): Promise<void> {
  const at = (route: string, values?: Body, body?: Body) => teller.tell(route.replace(' ', ' transit/'), values, body)
  const settings = { exportable: true, allow_plaintext_backup: true }
  await at('POST keys/:name', { name: 'aes' }, settings)
  await at('POST keys/:name', { name: 'rsa' }, { ...settings, type: 'rsa-2048' })
  await at('GET keys/:name', { name: 'aes' })
  await at('POST keys/:name/rotate', { name: 'aes' })
  await at('POST keys/:name/rotate', { name: 'aes' })
  const floors = { min_decryption_version: 2, min_encryption_version: 2, deletion_allowed: true }
  await at('POST keys/:name/config', { name: 'aes' }, floors)
  await at('POST keys/:name/trim', { name: 'aes' }, { min_available_version: 2 })
  await at('LIST keys', {}, { after: 'bulk', limit: 3 })
  const pem = (await at('GET wrapping_key')).string('data.public_key')
  const { key, publicKey, certificate } = stranger()
  await at('POST keys/:name/import', { name: 'in' }, { type: 'rsa-2048', public_key: publicKey })
  const ciphertext = envelopeOf(pem, key)
  await at('POST keys/:name/import_version', { name: 'in' }, { ciphertext, version: 1 })
  await at('POST keys/:name/csr', { name: 'in' })
  await at('POST keys/:name/set-certificate', { name: 'in' }, { certificate_chain: certificate, version: 1 })
  await at('GET export/:key_type/:name', { key_type: 'encryption-key', name: 'aes' })
  await at('GET export/:key_type/:name/:version', { key_type: 'encryption-key', name: 'aes', version: 3 })
  await at('GET byok-export/:dst/:src', { dst: 'in', src: 'aes' })
  await at('GET byok-export/:dst/:src/:version', { dst: 'in', src: 'aes', version: 3 })
  const backup = (await at('GET backup/:name', { name: 'aes' })).string('data.backup')
  await at('POST restore', {}, { backup, name: 'again' })
  await at('POST restore', {}, { backup, name: 'again', force: true })
  await at('POST restore/:name*', { name: 'once-more' }, { backup })
  await tellUses(at)
  await at('DELETE keys/:name/soft-delete', { name: 'aes' })
  await at('POST keys/:name/soft-delete-restore', { name: 'aes' })
  await at('DELETE keys/:name', { name: 'again' })
  await at('POST config/keys', {}, { disable_upsert: false })
  await at('GET config/keys')
  await at('POST cache-config', {}, { size: 100 })
  await at('GET cache-config')
}

const ca = { common_name: 'Root', key_type: 'ec', ttl: '100h' }

/** Every route of PKI. */
export async function tellPki(teller: Teller): Promise<void> {
  const at = (route: string, values?: Body, body?: Body) => teller.tell(route.replace(' ', ' pki/'), values, body)
  const internal = { type: 'internal' }
  const pem = (await at('POST root/generate/:type', internal, { ...ca, key_name: 'k' })).string('data.certificate')
  await at('POST issuers/generate/root/:type', internal, { ...ca, common_name: 'Other', issuer_name: 'other' })
  await at('POST root/rotate/:type', internal, { ...ca, common_name: 'Next' })
  await at('POST roles/:name', { name: 'r' }, { allow_any_name: true, key_type: 'ec', generate_lease: true })
  await at('PATCH roles/:name', { name: 'r' }, { ttl: '1h' })
  await at('GET roles/:name', { name: 'r' })
  await at('LIST roles', {}, { limit: 3 })
  await at('POST roles/:name/explain', { name: 'r' }, { common_name: 'a.example' })
  for (const route of ['GET ca', 'GET ca/pem', 'GET ca_chain', 'GET cert/ca', 'GET cert/ca/raw', 'GET cert/ca/raw/pem'])
    await at(route)
  await at('GET cert/ca_chain')
  for (const form of ['json', 'der', 'pem']) await at(`GET issuer/:issuer_ref/${form}`, { issuer_ref: 'other' })
  await tellIssuing(at, pem)
  await tellLists(at)
  await tellOcsp(teller, pem)
  await tellRevocations(at)
  await tellAuthority(at, pem)
  await at('DELETE roles/:name', { name: 'r' })
  await at('DELETE root')
}

type At = (route: string, values?: Body, body?: Body) => Promise<Reply>

async function tellIssuing(at: At, pem: string): Promise<void> {
  const [r, other] = [{ role: 'r' }, { role: 'r', issuer_ref: 'other' }]
  const asked = { common_name: 'a.example', ttl: '1h' }
  const serial = { serial: (await at('POST issue/:role', r, asked)).string('data.serial_number') }
  await at('POST issuer/:issuer_ref/issue/:role', other, asked)
  const csr = (await at('POST intermediate/cross-sign', {}, { ...asked, key_ref: 'k' })).string('data.csr')
  await at('POST intermediate/generate/:type', { type: 'internal' }, { ...asked, key_type: 'ec' })
  await at('POST issuers/generate/intermediate/:type', { type: 'internal' }, { ...asked, key_type: 'ec' })
  for (const path of ['sign/:role', 'sign-verbatim', 'sign-verbatim/:role', 'root/sign-intermediate']) {
    await at(`POST ${path}`, r, { csr, ttl: '1h' })
  }
  for (const path of ['sign/:role', 'sign-verbatim', 'sign-verbatim/:role', 'sign-intermediate']) {
    await at(`POST issuer/:issuer_ref/${path}`, other, { csr, ttl: '1h' })
  }
  await at('POST root/sign-self-issued', {}, { certificate: pem })
  await at('POST issuer/:issuer_ref/sign-self-issued', other, { certificate: pem })
  for (const form of ['', '/raw', '/raw/pem']) await at(`GET cert/:serial${form}`, serial)
  await at('LIST certs', {}, { limit: 3 })
  await at('LIST certs/detailed', {}, { limit: 3, issuer: 'other' })
}

async function tellLists(at: At): Promise<void> {
  const other = { issuer_ref: 'other' }
  const revoked_certs = [{ serial_number: '0a:0b', revocation_time: 1_700_000_000 }]
  const list = await at('POST issuer/:issuer_ref/sign-revocation-list', other, { crl_number: 1, revoked_certs })
  await at('POST issuer/:issuer_ref/resign-crls', other, { crl_number: 2, crls: [list.string('data.crl')] })
  const points = 'http://crl.example/{{issuer_id}}/{{shard}}'
  await at('POST config/urls', {}, { enable_templating: true, crl_distribution_points: points })
  await at('POST config/crl', {}, { auto_rebuild: true, enable_delta: true, unified_crl: true, crl_shards: 2 })
  await at('GET config/crl')
  for (const route of Object.keys(listRoutes)) await at(route, { ...other, shard: '1-of-2' })
}

/** OCSP requests about the certificate of the default issuer, which is stored like any other. */
async function tellOcsp(teller: Teller, pem: string): Promise<void> {
  const issuer = readCertificate(new X509Certificate(pem).raw)
  const request = writeOcspRequest({ issuer, serial: issuer.serial })
  for (const path of ['pki/ocsp', 'pki/unified-ocsp']) {
    await teller.tell(`POST ${path}`, {}, request)
    await teller.tell(`GET ${path}/:request**`, { request: request.toString('base64url') })
  }
}

async function tellRevocations(at: At): Promise<void> {
  const asked = { common_name: 'a.example', ttl: '1h' }
  const issued = await at('POST issue/:role', { role: 'r' }, asked)
  const [serial_number, private_key] = [issued.string('data.serial_number'), issued.string('data.private_key')]
  await at('POST revoke', {}, { serial_number })
  await at('POST revoke-with-key', {}, { serial_number, private_key })
  await at('POST config/crl', {}, { auto_rebuild: true, cross_cluster_revocation: true })
  await at('POST revoke', {}, { serial_number: '0a:0b:0c' })
  for (const list of ['revoked', 'unified-revoked', 'revocation-queue'])
    await at(`LIST certs/${list}`, {}, { limit: 3 })
  await at('POST issuer/:issuer_ref/revoke', { issuer_ref: 'other' })
}

async function tellAuthority(at: At, pem: string): Promise<void> {
  const other = { issuer_ref: 'other' }
  for (const path of ['config/ca', 'issuers/import/bundle', 'issuers/import/cert']) {
    await at(`POST ${path}`, {}, { pem_bundle: pem })
  }
  await at('POST intermediate/set-signed', {}, { certificate: pem })
  const { key } = stranger()
  const pkcs8 = key.toString('base64').replace(/.{64}/g, '$&\n')
  const text = `-----BEGIN PRIVATE KEY-----\n${pkcs8}\n-----END PRIVATE KEY-----\n`
  await at('POST keys/import', {}, { pem_bundle: text, key_name: 'imported' })
  await at('POST keys/generate/:type', { type: 'exported' }, { key_type: 'ec', key_name: 'made' })
  await at('LIST keys')
  await at('GET key/:key_ref', { key_ref: 'made' })
  await at('POST key/:key_ref', { key_ref: 'made' }, { key_name: 'renamed' })
  await at('DELETE key/:key_ref', { key_ref: 'renamed' })
  await at('LIST issuers')
  await at('GET issuer/:issuer_ref', other)
  await at('POST issuer/:issuer_ref', other, { issuer_name: 'other' })
  await at('PATCH issuer/:issuer_ref', other, { leaf_not_after_behavior: 'permit' })
  await at('POST config/urls', {}, { ocsp_servers: 'http://ocsp.example' })
  await at('POST config/cluster', {}, { path: 'http://pki.example' })
  await at('GET config/acme')
  await at('POST config/issuers', {}, { default: 'other' })
  await at('POST root/replace')
  await at('POST config/keys', {}, { default: 'k' })
  for (const name of ['urls', 'cluster', 'issuers', 'keys']) await at(`GET config/${name}`)
  await at('DELETE issuer/:issuer_ref', other)
  await at('POST config/auto-tidy', {}, { enabled: true, tidy_cert_store: true })
  await at('GET config/auto-tidy')
  await at('POST tidy', {}, { tidy_cert_store: true, tidy_revoked_certs: true, tidy_revocation_queue: true })
  await at('GET tidy-status')
  await at('POST tidy-cancel')
}

async function tellUses(at: (route: string, values?: Body, body?: Body) => Promise<Reply>): Promise<void> {
  const aes = { name: 'aes' }
  const { ciphertext } = (await at('POST encrypt/:name', aes, { plaintext: input })).body as { ciphertext: string }
  const text = ciphertext ?? (await at('POST encrypt/:name', aes, { plaintext: input })).string('data.ciphertext')
  await at('POST encrypt/:name', { name: 'upserted' }, { plaintext: input })
  await at('POST decrypt/:name', aes, { ciphertext: text })
  await at('POST rewrap/:name', aes, { ciphertext: text })
  await at('POST datakey/:type/:name', { ...aes, type: 'plaintext' })
  const rsa = { name: 'rsa', hash_algorithm: 'sha2-256' }
  const signature = (await at('POST sign/:name', rsa, { input })).string('data.signature')
  await at('POST sign/:name/:hash_algorithm', rsa, { input })
  await at('POST verify/:name', rsa, { input, signature })
  await at('POST verify/:name/:hash_algorithm', rsa, { input, signature })
  await at('POST hmac/:name', aes, { input })
  await at('POST hmac/:name/:algorithm', { ...aes, algorithm: 'sha2-256' }, { input })
  await at('POST hash', {}, { input })
  await at('POST hash/:algorithm', { algorithm: 'sha2-256' }, { input })
  await at('POST random', {}, { bytes: 8 })
  await at('POST random/:first', { first: 8 })
  await at('POST random/:source/:bytes', { source: 'platform', bytes: 8 })
}

/** Every route of auth/token. */
export async function tellTokens(teller: Teller, server: TestServer, clientOf: (token: string) => Teller) {
  const at = (route: string, values?: Body, body?: Body, by = teller) =>
    by.tell(route.replace(' ', ' auth/token/'), values, body)
  const create = async (body: Body = {}) => {
    const { auth } = (await at('POST create', {}, body)).body as {
      auth: { client_token: string; accessor: string }
    }
    return { token: auth.client_token, accessor: auth.accessor }
  }
  await at('POST create-orphan')
  await create({ id: 'chosen-by-hand' })
  await at('GET lookup-self', {}, undefined, clientOf('chosen-by-hand'))
  const policy = 'path "*" { capabilities = ["create", "read", "update", "delete", "list", "sudo"] }'
  await teller.tell('POST sys/policies/acl/:name*', { name: 'all' }, { policy })
  const own = await create({ policies: ['all'], no_default_policy: true, ttl: '1h' })
  const self = clientOf(own.token)
  for (const route of ['GET lookup-self', 'POST lookup-self', 'POST renew-self', 'POST create', 'POST revoke-self'])
    await at(route, {}, {}, self)
  for (const route of self.told) teller.told.add(route)
  const { token, accessor } = await create({ ttl: '1h', num_uses: 3 })
  await at('POST lookup', {}, { token })
  await at('GET lookup', {}, undefined, clientOf(server.rootToken))
  teller.told.add('GET auth/token/lookup')
  await at('POST lookup-accessor', {}, { accessor })
  await at('LIST accessors', {}, { after: 'bulk', limit: 3 })
  await at('POST renew', {}, { token })
  await at('POST renew-accessor', {}, { accessor })
  const limited = clientOf(token)
  for (let uses = 0; uses < 3; uses++) await at('GET lookup-self', {}, undefined, limited)
  await at('POST revoke', {}, { token: (await create()).token })
  await at('POST revoke-orphan', {}, { token: (await create()).token })
  await at('POST revoke-accessor', {}, { accessor: (await create()).accessor })
}

/** Every route of sys/ that leaves the node as it is. @param prepared its leases lie below shop/of/ */
export async function tellSystem(
  teller: Teller,
  token: TestToken,
  { leaseIds, recoverySecret: key }: { readonly leaseIds: readonly string[]; readonly recoverySecret: string },
): Promise<void> {
  const at = (route: string, values?: Body, body?: Body) => teller.tell(route.replace(' ', ' sys/'), values, body)
  for (const path of ['health', 'seal-status', 'leader', 'init', 'mounts', 'auth', 'host-info', 'ha-status', 'metrics'])
    await at(`GET ${path}`)
  for (const path of ['internal/specs/openapi', 'internal/ui/mounts', 'internal/ui/resultant-acl', 'policy', 'audit'])
    await at(`GET ${path}`)
  await tellPolled(at)
  await tellSettings(at)
  await at('HEAD health')
  await at('LIST version-history')
  await tellMounts(at)
  for (const base of ['policies/acl', 'policy']) {
    await at(`POST ${base}/:name*`, { name: 'some' }, { policy: 'path "x" { capabilities = ["read"] }' })
    await at(`GET ${base}/:name*`, { name: 'some' })
    await at(`LIST ${base}`)
    await at(`DELETE ${base}/:name*`, { name: 'some' })
  }
  const device = { path: 'file' }
  await at('POST audit/:path*', device, { type: 'file', options: { file_path: join(runDirectory(), 'growth.log') } })
  await at('POST audit-hash/:path*', device, { input: 'x' })
  await at('GET audit')
  await at('DELETE audit/:path*', device)
  const { body } = await teller.tell('POST auth/token/create')
  const { client_token, accessor } = (body as { auth: { client_token: string; accessor: string } }).auth
  await at('POST capabilities-self', {}, { paths: ['x'] })
  await at('POST capabilities', {}, { paths: ['x'], token: client_token })
  await at('POST capabilities-accessor', {}, { paths: ['x'], accessor })
  await tellRootGeneration(at, key)
  await tellLeases(at, leaseIds)
  await tellManaged(at, token)
}

async function tellMounts(at: At): Promise<void> {
  const mount = { path: 'other' }
  await at('POST mounts/:path*', mount, { type: 'transit' })
  await at('GET mounts/:path*', mount)
  await at('GET mounts/:path*/tune', mount)
  await at('POST mounts/:path*/tune', mount, { description: 'x' })
  await at('GET auth/:path*', { path: 'token' })
  await at('GET auth/:path*/tune', { path: 'token' })
  await at('POST auth/:path*/tune', { path: 'token' }, { description: 'x' })
  await at('POST auth/:path*', { path: 'other' }, { type: 'token' })
  await at('DELETE auth/:path*', { path: 'other' })
  await at('GET internal/ui/mounts/:path*', mount)
  const id = (await at('POST remount', {}, { from: 'other', to: 'moved' })).string('migration_id')
  await at('GET remount/status/:id', { id })
  await at('POST plugins/reload/backend', {}, { mounts: ['moved'] })
  await at('POST plugins/reload/:type/:name', { type: 'secret', name: 'transit' })
  await at('DELETE mounts/:path*', { path: 'moved' })
}

async function tellRootGeneration(at: At, key: string): Promise<void> {
  await at('GET generate-root/attempt')
  await at('POST generate-root/attempt')
  await at('DELETE generate-root/attempt')
  const nonce = (await at('POST generate-root/attempt')).string('nonce')
  await at('POST generate-root/update', {}, { key, nonce })
  await delay(1500) // the node takes a few tries in a second
  await at('GET generate-root-token/attempt')
  await at('POST generate-root-token/attempt')
  await at('DELETE generate-root-token/attempt')
  const another = (await at('POST generate-root-token/attempt')).string('data.nonce')
  await at('POST generate-root-token/update', {}, { key, nonce: another })
}

async function tellLeases(at: At, [first, ...more]: readonly string[]): Promise<void> {
  const lease_id = first ?? ''
  await at('POST leases/lookup', {}, { lease_id })
  await at('LIST leases/lookup', {}, { limit: 3 })
  await at('LIST leases/lookup/:prefix*', { prefix: 'shop' }, { limit: 3 })
  for (const path of ['leases/renew', 'renew']) {
    await at(`POST ${path}`, {}, { lease_id })
    await at(`POST ${path}/:lease_id*`, { lease_id })
  }
  for (const [index, path] of ['leases/revoke', 'revoke'].entries()) {
    await at(`POST ${path}`, {}, { lease_id: more[index] })
    await at(`POST ${path}/:lease_id*`, { lease_id: more[index + 2] })
  }
  for (const [index, path] of [
    'leases/revoke-prefix',
    'revoke-prefix',
    'leases/revoke-force',
    'revoke-force',
  ].entries())
    await at(`POST ${path}/:prefix*`, { prefix: `shop/of/${index + 6}` }, { sync: index === 0 })
}

async function tellManaged(at: At, token: TestToken): Promise<void> {
  const settings = { library: 'same', token_label: token.label, pin: token.pin, key_label: 'made', mechanism: '0x1041' }
  const key = { type: 'pkcs11', name: 'managed' }
  const make = () =>
    at('POST managed-keys/:type/:name', key, {
      ...settings,
      curve: 'P256',
      allow_generate_key: true,
      any_mount: true,
    })
  await make()
  await at('GET managed-keys/:type/:name', key)
  await at('LIST managed-keys/:type', key)
  await at('POST managed-keys/:type/:name/test/sign', key)
  await at('DELETE managed-keys/:type/:name', key)
  await make()
}
