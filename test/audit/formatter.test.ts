import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import type { AuditedRequest, RequestEntry } from '../../src/audit/entry.ts'
import { Formatter } from '../../src/audit/formatter.ts'
import { readOptions } from '../../src/audit/options.ts'
import { Hasher } from '../../src/audit/render.ts'
import { TokenCaller } from '../../src/auth/caller.ts'
import type { TokenRow } from '../../src/auth/token.ts'
import type { Mount } from '../../src/route.ts'
import { certify, ecPair, named } from '../x509/authority.ts'
import { hmac } from './device.ts'

const key = Buffer.alloc(32, 7)
const h = (text: string) => hmac(key, text)
const formatterWith = (options: Readonly<Record<string, string>> = {}) =>
  new Formatter(readOptions({ type: 'file', options: { file_path: '/f', ...options } }), new Hasher(key))

const asked: AuditedRequest = {
  ...{ id: 'i', operation: 'update', path: 'p', input: {}, sent: '', credential: '' },
  ...{ remoteAddress: '', remotePort: 0, clientCertificate: undefined, mount: undefined },
}
const nobody = { caller: undefined, verdict: undefined, isRefused: false }

/** The members of a request's record. */
function membersOf(request: Partial<AuditedRequest>, more: Partial<RequestEntry> = {}, formatter = formatterWith()) {
  const entry = { request: { ...asked, ...request }, operation: 'update', ...nobody, ...more } as const
  return JSON.parse(`{${formatter.requestMembers(entry)}}`)
}
const bare = { id: 'i', operation: 'update', namespace: { id: 'root' }, path: 'p' }

test('the serial number of a client certificate is on record in decimal, at any length', () => {
  const pair = ecPair()
  const formatter = formatterWith()
  const serials = ['01', '7fffffffffffffff', '4102030405060708090a0b0c0d0e0f1011121314']
  const certificates = serials.map((hex) =>
    certify({ subject: named('c'), key: pair, serial: Buffer.from(hex, 'hex') }),
  )
  // Each twice: it is read once for a connection.
  for (const [index, clientCertificate] of [...certificates, ...certificates].entries()) {
    expect(membersOf({ clientCertificate }, {}, formatter).request).toEqual({
      ...bare,
      client_certificate_serial_number: BigInt(`0x${serials[index % serials.length]}`).toString(),
    })
  }
  expect(membersOf({}, {}, formatter).request).toEqual(bare)
})

test('a negative serial number, which a client may choose, is on record with its sign', () => {
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=c']
  for (const serial of ['-1', '-128', '-9223372036854775808', '0']) {
    const more = ['-keyout', '/dev/null', '-outform', 'DER', '-set_serial', serial]
    const clientCertificate = execFileSync('openssl', [...made, ...more], { stdio: ['ignore', 'pipe', 'ignore'] })
    expect(membersOf({ clientCertificate }).request.client_certificate_serial_number).toBe(serial)
  }
})

test('the certificate of a connection is parsed for its first request only', () => {
  const clientCertificate = Buffer.from(certify({ subject: named('c'), key: ecPair(), serial: Buffer.from([9]) }))
  const serial = () => membersOf({ clientCertificate }).request.client_certificate_serial_number
  expect(serial()).toBe('9')
  // From now on it cannot be parsed.
  clientCertificate.fill(0)
  expect(serial()).toBe('9')
})

test('headers that are audited are on record with each of their values, in clear or not, and no others', () => {
  const headers = { 'x-a': 'one', 'x-b': ['two', 'th"ree'], 'x-c': 'four' }
  const audited = (...auditedHeaders: { name: string; hmac: boolean }[]) =>
    membersOf({ headers, auditedHeaders }).request
  const [a, b, d] = [
    { name: 'x-a', hmac: true },
    { name: 'x-b', hmac: false },
    { name: 'x-d', hmac: false },
  ]
  expect(audited(a, b, d).headers).toEqual({ 'x-a': [h('one')], 'x-b': ['two', 'th"ree'] })
  expect([audited(d), audited(), membersOf({ auditedHeaders: [a] }).request]).toEqual([bare, bare, bare])
})

const row = {
  ...{ id: 't', accessor: 'acc', displayName: 'token', policies: ['p'], meta: {}, ttlSeconds: 60, createdAt: 0 },
} as unknown as TokenRow
const callerWith = (more: Partial<TokenRow>) => new TokenCaller({ ...row, ...more }, 'cred', String)

test('of a token its remaining uses are on record while there are any', () => {
  const shown = (numUses: number) => membersOf({ credential: 'cred' }, { caller: callerWith({ numUses }) }).auth
  const auth = {
    ...{ client_token: h('cred'), accessor: h('acc'), display_name: 'token', policies: ['p'], token_policies: ['p'] },
    ...{ token_type: 'service', token_ttl: 60, token_issue_time: '1970-01-01T00:00:00.000Z' },
  }
  expect(shown(1)).toEqual({ ...auth, remaining_uses: 1 })
  for (const uses of [0, -1]) expect(shown(uses)).toEqual(auth)
})

test('a record shows the token of who is unknown as it shows that of a caller, and none where none was sent', () => {
  const token = { client_token: h('cred') }
  expect(membersOf({ credential: 'cred' })).toEqual({ auth: { token_type: 'default' }, request: { ...bare, ...token } })
  expect(membersOf({})).toEqual({ auth: { token_type: 'default' }, request: bare })
  const known = membersOf({ credential: 'cred' }, { caller: callerWith({}) }).request
  expect(known).toEqual({ ...bare, ...token, client_token_accessor: h('acc') })
  const open = formatterWith({ hmac_accessor: 'false' })
  const clear = membersOf({ credential: 'cred' }, { caller: callerWith({}) }, open)
  expect([clear.request.client_token_accessor, clear.auth.accessor]).toEqual(['acc', 'acc'])
})

test('the policies that granted a request are those of the rule, or all of the caller’s where no rule was needed', () => {
  const decided = { missing: [], broken: undefined }
  const rule = { path: 'p', capabilities: 2, policies: ['q', 'r'], limits: undefined }
  const results = (verdict: RequestEntry['verdict'], caller?: TokenCaller) =>
    membersOf({}, { verdict, ...(caller ? { caller } : {}) }).auth.policy_results
  const acl = (name: string) => ({ name, namespace_id: 'root', type: 'acl' })
  expect(results({ allowed: true, rule, ...decided }, callerWith({}))).toEqual({
    ...{ allowed: true, granting_policies: ['q', 'r'].map(acl) },
  })
  const root = { allowed: true, rule: null, ...decided }
  expect(results(root, callerWith({}))).toEqual({ allowed: true, granting_policies: [acl('p')] })
  expect(results(root)).toEqual({ allowed: true, granting_policies: [] })
  expect(results({ allowed: false, rule, ...decided }, callerWith({}))).toEqual({ allowed: false })
})

test('a record names the mount, and whether it is one of the ways to sign in', () => {
  const mount = (path: string, config = {}): Mount => ({ uuid: 'u', type: 'x', path, config })
  const shown = (path: string) => membersOf({ mount: mount(path) }).request
  expect(shown('auth/x/')).toEqual({ ...bare, mount_point: 'auth/x/', mount_type: 'x', mount_class: 'auth' })
  expect(shown('author/')).toEqual({ ...bare, mount_point: 'author/', mount_type: 'x', mount_class: 'secret' })
  const input = { a: 'x', b: ['y'], c: 'z' }
  const tuned = mount('m/', { audit_non_hmac_request_keys: ['a', 'b'], audit_non_hmac_response_keys: 'c' })
  expect(membersOf({ mount: tuned, input }).request.data).toEqual({ a: 'x', b: ['y'], c: h('z') })
})

test('only the answer to a list is on record by the lengths of its lists', () => {
  const data = { keys: ['a', 'b'], key_info: { a: 1, b: 2, c: 3 }, keys_info: ['d'] }
  const lengths = { keys: 2, key_info: 3, keys_info: [h('d')] }
  const whole = { keys: [h('a'), h('b')], key_info: data.key_info, keys_info: [h('d')] }
  const reply = { status: 200, headers: [], body: '' }
  const shown = (operation: 'list' | 'read', elide: string) => {
    const entry: RequestEntry = { request: { ...asked, operation }, operation, ...nobody }
    const response = { outcome: data, warnings: [], error: '', results: false, reply }
    const formatter = formatterWith({ elide_list_responses: elide })
    return JSON.parse(`${formatter.response('now', '"request":{}', entry, response).join('')}}`).response.data
  }
  expect([shown('list', 'true'), shown('read', 'true'), shown('list', 'false')]).toEqual([lengths, whole, whole])
})
