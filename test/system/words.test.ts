import { beforeAll, describe, expect, test } from 'vitest'
import { done, useNode } from '../api/node.ts'

/** The texts of the reference's refusals, and the statuses of paths without an answer: clients match on them. */

const node = useNode()

beforeAll(async () => {
  await done(node.root.post('sys/mounts/taken', { type: 'transit' }))
})

type Row = readonly [verb: string, path: string, body: object | undefined, status: number, text: string]

const none = '{"errors":[]}'
const unsupported = '1 error occurred:\n\t* unsupported operation\n\n'
const rule = 'path "a" { capabilities = ["read"] }'
const device = { type: 'file' }
const rows: Readonly<Record<string, readonly Row[]>> = {
  'the protocol': [
    ['GET', 'nomount/x', undefined, 404, 'no handler for route "nomount/x". route entry not found.'],
    ['GET', 'transit/nopath', undefined, 404, '1 error occurred:\n\t* unsupported path\n\n'],
    ['GET', 'transit/keys', undefined, 405, unsupported],
    ['GET', 'transit/keys?list=zz', undefined, 400, none],
    ['DELETE', 'transit/keys', undefined, 405, unsupported],
    ['GET', 'transit/keys/none', undefined, 404, none],
    ['LIST', 'transit/keys', undefined, 404, none],
    ['POST', 'transit/keys/k/', {}, 400, "cannot write to a path ending in '/'"],
    ['GET', 'transit/../sys/mounts', undefined, 400, 'path cannot contain parent references'],
    ['OPTIONS', 'transit/keys/k', undefined, 400, 'cannot handle internal-only request operation'],
    ['POST', 'transit/keys/k', [], 400, 'json: cannot unmarshal array into Go value of type map[string]interface {}'],
    ['POST', 'transit/keys/k', { derived: 'yes' }, 400, 'error converting input for field "derived"'],
    ['POST', 'transit/keys/k', { auto_rotate_period: -5 }, 400, "cannot provide negative value '-5'"],
    ['POST', 'sys/health', {}, 405, 'unsupported operation'],
    ['GET', 'sys/health?activecode=abc', undefined, 400, none],
    ['POST', 'sys/init', { secret_shares: 1, secret_threshold: 1 }, 400, 'Vault is already initialized'],
    ['POST', 'sys/unseal', {}, 400, "'key' must be specified in request body as JSON, or 'reset' set to true"],
  ],
  mounts: [
    ['GET', 'sys/mounts/nope', undefined, 400, 'No secret engine mount at nope/'],
    // It is listed below sys/auth.
    ['GET', 'sys/mounts/auth/token', undefined, 400, 'No secret engine mount at auth/token/'],
    ['POST', 'sys/mounts/taken', { type: 'transit' }, 400, 'path is already in use at taken/'],
    ['POST', 'sys/mounts/x', {}, 400, 'backend type must be specified as a string'],
    ['POST', 'sys/mounts/x', { type: 'zzz' }, 400, 'plugin not found in the catalog: zzz'],
    ['DELETE', 'sys/mounts/nope', undefined, 204, ''],
    ['GET', 'sys/auth/nope', undefined, 400, 'No auth engine at nope/'],
    ['DELETE', 'sys/auth/nope', undefined, 204, ''],
    ['POST', 'sys/remount', {}, 400, "both 'from' and 'to' path must be specified as a string"],
    ['POST', 'sys/remount', { from: 'nope', to: 'b' }, 400, 'no matching mount at "nope/"'],
    ['POST', 'sys/remount', { from: 'taken', to: 'transit' }, 400, 'path already in use at "transit/"'],
    ['POST', 'sys/plugins/reload/backend', {}, 400, 'plugin or mounts must be provided'],
    ['POST', 'sys/plugins/reload/backend', { mounts: ['no'] }, 400, '* cannot fetch mount entry on "no/"'],
    [
      'POST',
      'sys/plugins/reload/backend',
      { plugin: 'transit', mounts: ['transit'] },
      400,
      'plugin and mounts cannot be set at the same time',
    ],
  ],
  policies: [
    ['GET', 'sys/policies/acl', undefined, 405, unsupported],
    ['GET', 'sys/policies/acl/none', undefined, 404, none],
    ['DELETE', 'sys/policies/acl/none', undefined, 204, ''],
    ['PUT', 'sys/policies/acl/p', {}, 400, "'policy' parameter not supplied or empty"],
    ['PUT', 'sys/policies/acl/p', { policy: 'path "a" { zzz = 1 }' }, 400, '* path "a": invalid key "zzz" on line 1'],
    [
      'PUT',
      'sys/policies/acl/p',
      { policy: 'path "a/+*" { capabilities = ["read"] }' },
      400,
      `failed to parse policy: path "a/+*": invalid use of wildcards ('+*' is forbidden)`,
    ],
    [
      'PUT',
      'sys/policies/acl/p',
      { policy: 'path "x" { capabilities = ["zap"] }' },
      400,
      'path "x": invalid capability "zap"',
    ],
    ['PUT', 'sys/policies/acl/root', { policy: rule }, 400, 'cannot update "root" policy'],
    ['DELETE', 'sys/policies/acl/root', undefined, 400, 'cannot delete "root" policy'],
    ['DELETE', 'sys/policies/acl/default', undefined, 400, 'cannot delete default policy'],
    ['PUT', 'sys/policies/acl/LOUD', { policy: rule }, 200, 'policy name was converted to loud'],
    ['POST', 'sys/capabilities-self', {}, 400, 'paths must be supplied'],
    ['POST', 'sys/capabilities', { path: 'a' }, 400, 'no token found'],
    ['POST', 'sys/capabilities', { path: 'a', token: 'x' }, 400, '1 error occurred:\n\t* invalid token\n\n'],
    ['POST', 'sys/capabilities-accessor', { path: 'a', accessor: 'x' }, 400, '* invalid accessor\n\n'],
  ],
  leases: [
    ['POST', 'sys/leases/lookup', { lease_id: 'x' }, 400, 'invalid lease'],
    ['POST', 'sys/leases/lookup', {}, 400, 'lease_id must be specified'],
    ['LIST', 'sys/leases/lookup/pki', undefined, 404, none],
    ['POST', 'sys/leases/renew', { lease_id: 'x' }, 400, 'lease not found'],
    ['POST', 'sys/leases/revoke', { lease_id: 'x' }, 204, ''],
  ],
  'audit and managed keys': [
    ['POST', 'sys/audit-hash/nope', { input: 'x' }, 400, 'unknown audit backend: nope/'],
    ['PUT', 'sys/audit/f', {}, 400, 'audit backend type must be specified as a string'],
    [
      'PUT',
      'sys/audit/f',
      { ...device, options: { file_path: '/nowhere/x' } },
      400,
      'audit backend failed test message',
    ],
    ['DELETE', 'sys/audit/nope', undefined, 204, ''],
    ['GET', 'sys/config/auditing/request-headers/none', undefined, 400, 'Could not find header in config'],
    ['LIST', 'sys/managed-keys/pkcs11', undefined, 404, none],
    ['GET', 'sys/managed-keys/pkcs11/none', undefined, 404, none],
    ['DELETE', 'sys/managed-keys/pkcs11/none', undefined, 204, ''],
  ],
  'auth/token': [
    ['POST', 'auth/token/lookup', { token: 'nope' }, 403, 'bad token'],
    ['POST', 'auth/token/lookup-accessor', { accessor: 'nope' }, 400, '1 error occurred:\n\t* invalid accessor\n\n'],
    ['POST', 'auth/token/renew', { token: 'nope' }, 400, 'token not found'],
    ['POST', 'auth/token/renew-self', {}, 400, 'lease is not renewable'],
    ['POST', 'auth/token/revoke', {}, 400, 'missing token ID'],
    ['POST', 'auth/token/revoke', { token: 'nope' }, 204, ''],
    ['POST', 'auth/token/revoke-accessor', { accessor: 'nope' }, 200, 'No token found with this accessor'],
    ['POST', 'auth/token/create', { policies: ['nosuch'] }, 200, 'Policy "nosuch" does not exist'],
  ],
}

describe('the reference’s words of', () => {
  test.each(Object.entries(rows))('%s', async (_, requests) => {
    const wrong: unknown[] = []
    for (const [verb, path, body, status, text] of requests) {
      const reply = await node.root.call(verb, path, body)
      const quoted = text === none || text === '' ? text : JSON.stringify(text).slice(1, -1)
      if (reply.status !== status || !reply.text.includes(quoted)) wrong.push([verb, path, reply.status, reply.text])
    }
    expect(wrong).toEqual([])
  })
})
