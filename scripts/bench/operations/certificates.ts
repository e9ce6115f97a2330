import { generateKeyPairSync, sign } from 'node:crypto'
import { asn1, contextAround, write } from '../../../src/crypto/der.ts'
import type { Api } from '../api.ts'
import { keyOfRequest, type MinimalAuthority, openAuthority, pem, urls } from '../authority/authority.ts'
import type { LeafPairType } from '../authority/leafpair.ts'
import { multiplyCertificates } from '../multiply.ts'
import type { StrongroomNode } from '../node.ts'
import { type Body, get, type Operation, type Operations, once, post } from '../operation.ts'
import type { RawToken } from '../token.ts'

const host = 'host00000000.example.com'
const hosts = 10_000
/** More than the cache holds, so that none of them is in it when its turn comes. */
const uncached = 100_000
/** The serials of these end with eight digits. */
const prefix = '11'.repeat(16)
const serialPath = `${'11-'.repeat(16)}00-00-00-00`

const authority: (token: RawToken) => MinimalAuthority = once(openAuthority)
const ready = new WeakMap<Api, Promise<unknown>>()

/** An authority whose P-256 key is wrapped by the token, with a role for each row; made once. */
export function prepared(node: Api): Promise<unknown> {
  const known = ready.get(node) ?? prepare(node)
  ready.set(node, known)
  return known
}

async function prepare(node: Api): Promise<void> {
  await node.call('POST', 'sys/mounts/pki', { type: 'pki', config: { max_lease_ttl: '87600h' } })
  await node.call('POST', 'pki/config/urls', urls)
  await node.call('POST', 'pki/root/generate/internal', {
    common_name: 'Bench Root',
    key_type: 'ec',
    key_bits: 256,
    ttl: '87600h',
  })
  const rules = { allowed_domains: 'example.com', allow_subdomains: true, ttl: '720h' }
  const roles = { silent: { key_type: 'ec', no_store: true }, stored: { key_type: 'ec' }, rsa: { key_type: 'rsa' } }
  for (const [name, role] of Object.entries(roles)) await node.call('POST', `pki/roles/${name}`, { ...rules, ...role })
}

/** Key, certificate and chain, as text. */
function issued(token: RawToken, type: LeafPairType, name: unknown) {
  const { privateKey, label, spki } = token.leafPair(type)
  const { fields, ...certified } = authority(token).certify(String(name), spki)
  const answer = { ...fields, private_key: pem(label, privateKey), private_key_type: type.slice(0, -4) }
  return { certified, answer }
}

const issue = (type: LeafPairType, role: string, stored: boolean): Operation => ({
  // The signature counts for a P-256 certificate alone; beside making an RSA pair it would not be seen.
  raw: (token) => [token.leafPair(type), type === 'ec-256' && token.pair('ecdsa-p256').sign(Buffer.alloc(600))],
  slow: type === 'rsa-2048',
  stored,
  serve(token, body, store) {
    const { certified, answer } = issued(token, type, body.common_name)
    return stored ? store.insert(certified).then(() => answer) : answer
  },
  body: (token) => authority(token) && { common_name: host },
  variants: hosts,
  async ask(node) {
    await prepared(node)
    return { ...post(`pki/issue/${role}`, { common_name: host }), variants: hosts }
  },
})

/** A PKCS#10 request for a P-256 key, PEM. */
function request(): string {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ format: 'der', type: 'spki' })
  const version = write(asn1.integer, Buffer.alloc(1))
  const info = write(asn1.sequence, version, write(asn1.sequence), spki, write(contextAround(0)))
  const algorithm = write(asn1.sequence, Buffer.from('06082a8648ce3d040302', 'hex'))
  const signature = write(asn1.bitString, Buffer.alloc(1), sign('sha256', info, privateKey))
  return `${pem('CERTIFICATE REQUEST', write(asn1.sequence, info, algorithm, signature))}\n`
}

const signing: Operation = {
  raw: (token) => token.pair('ecdsa-p256').sign(Buffer.alloc(600)),
  stored: true,
  async serve(token, body, store) {
    const { fields, ...certified } = authority(token).certify(String(body.common_name), keyOfRequest(String(body.csr)))
    await store.insert(certified)
    return fields
  },
  body: (token) => authority(token) && { csr: request(), common_name: host },
  variants: hosts,
  async ask(node) {
    await prepared(node)
    const names = { use_csr_common_name: false, use_csr_sans: false }
    const rules = { allowed_domains: 'example.com', allow_subdomains: true, ttl: '720h', key_type: 'ec' }
    await node.call('POST', 'pki/roles/csr', { ...rules, ...names })
    return { ...post('pki/sign/csr', { csr: request(), common_name: host }), variants: hosts }
  },
}

/** The answer to a read of a certificate. */
const readable = (der: Buffer): Body => ({ certificate: pem('CERTIFICATE', der), revocation_time: 0 })

const sample = once((token) => issued(token, 'ec-256', host).certified.der)
const nobody = { headers: {} }

const cached: Operation = {
  serve: (token) => readable(sample(token)),
  async ask(node) {
    await prepared(node)
    const { data } = await node.call('POST', 'pki/issue/stored', { common_name: host })
    return { ...get(`pki/cert/${(data as Body).serial_number}`), ...nobody }
  },
}

const past: Operation = {
  stored: true,
  prepare: (token, store) => store.multiply(sample(token), prefix, uncached),
  serve: async (_, { path }, store) =>
    readable(await store.find(Buffer.from(String(path).slice(1).replaceAll('-', ''), 'hex'))),
  path: `/${serialPath}`,
  variants: uncached,
  async ask(node: StrongroomNode) {
    await prepared(node)
    const { data } = await node.call('POST', 'pki/issue/stored', { common_name: host })
    const serial = String((data as Body).serial_number).replaceAll(':', '')
    await multiplyCertificates(node.database, { serial, prefix, count: uncached })
    return { ...get(`pki/cert/${serialPath}`), ...nobody, variants: uncached }
  },
}

/** A certificate authority. */
export const certificates: Operations = {
  'issue ec-256, no_store': issue('ec-256', 'silent', false),
  'issue ec-256': issue('ec-256', 'stored', true),
  'issue rsa-2048': issue('rsa-2048', 'rsa', true),
  'sign a CSR, ec-256': signing,
  'certificate read': cached,
  'certificate read, uncached': past,
}
