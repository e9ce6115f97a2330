import { describe, expect, test } from 'vitest'
import { done, expectData, expectRefused, fresh, useSharedNode } from '../../api/node.ts'
import { createAuthority, warningsOf } from '../api/authority.ts'
import { csrOf } from '../api/csr.ts'
import { altNames, dnsName, forge, forgeDer, pemOf } from '../proof/forge.ts'

const node = useSharedNode()
const write = (name: string, body: Record<string, unknown>) => node.root.post(`pki/roles/${name}`, body)
const dataOf = (reply: { body: unknown }) => (reply.body as { data: Record<string, unknown> }).data

describe('explaining a role', () => {
  test('answers for every name whether it is allowed, and which setting would allow it', async () => {
    const name = fresh('r')
    await done(write(name, { allowed_domains: 'example.com', allow_subdomains: true }))
    const asked = {
      common_name: 'a.example.com',
      alt_names: 'example.com,b.example.com',
      uri_sans: 'urn:a:b',
      ttl: '1h',
    }
    const reply = await done(node.root.post(`pki/roles/${name}/explain`, asked))
    const allowed = (subject: string, value: string) => ({ subject, value, allowed: true })
    expectData(reply, {
      allowed: false,
      checks: [
        allowed('key', 'rsa'),
        allowed('common_name', 'a.example.com'),
        allowed('dns_san', 'a.example.com'),
        {
          subject: 'dns_san',
          value: 'example.com',
          allowed: false,
          text: 'subject alternate name example.com not allowed by this role',
          rule: 'example.com is an allowed domain itself',
          setting: 'allow_bare_domains=true',
        },
        allowed('dns_san', 'b.example.com'),
        {
          subject: 'uri_san',
          value: 'urn:a:b',
          allowed: false,
          text: 'URI Subject Alternative Names are not allowed in this role, but were provided via the API',
          rule: 'no URI is allowed',
          setting: 'allowed_uri_sans',
        },
        { subject: 'validity', value: expect.stringMatching(/^\d{4}-.*Z$/), allowed: true },
      ],
      warnings: [],
    })
  })

  test('knows the limits of the mount and the identity of the token', async () => {
    const [mount, name] = [fresh('m'), fresh('r')]
    await done(node.root.post(`sys/mounts/${mount}`, { type: 'pki', config: { max_lease_ttl: '1h' } }))
    const role = { allowed_domains: '{{identity.entity.metadata.team}}.com', allowed_domains_template: true }
    await done(node.root.post(`${mount}/roles/${name}`, { ...role, allow_bare_domains: true }))
    const token = await done(node.root.post('auth/token/create', { policies: ['root'], meta: { team: 'blue' } }))
    const client = node.client(token.string('auth.client_token'))
    const explain = (common_name: string) => client.post(`${mount}/roles/${name}/explain`, { common_name, ttl: '2h' })
    expect((await done(explain('blue.com'))).body).toMatchObject({
      data: {
        allowed: true,
        warnings: ['TTL "2h0m0s" is longer than permitted maxTTL "1h0m0s", so maxTTL is being used'],
      },
    })
    expect((await done(explain('red.com'))).body).toMatchObject({ data: { allowed: false } })
  })

  test('takes the names of issue as they come: alt_names is one text', async () => {
    const name = fresh('r')
    await done(write(name, { allow_any_name: true }))
    const explain = (body: Record<string, unknown>) => node.root.post(`pki/roles/${name}/explain`, body)
    const lists = { ip_sans: '::1,10.0.0.1', other_sans: ['1.2;UTF8:a,b'], user_ids: 'u', serial_number: 's' }
    const data = dataOf(
      await done(explain({ common_name: 'a', exclude_cn_from_sans: 'true', not_after: 'x', ...lists })),
    )
    const subjects = (data.checks as { subject: string; value: string }[]).map(
      ({ subject, value }) => `${subject} ${value}`,
    )
    expect(subjects).toEqual([
      'key rsa',
      'common_name a',
      'serial_number s',
      'ip_san ::1',
      'ip_san 10.0.0.1',
      'other_san 1.2;UTF8:a,b',
      'user_id u',
      'validity x',
    ])
    expect((await explain({ common_name: 'a', alt_names: ['b'] })).status).toBe(400)
  })

  test('tells for a CSR what sign would answer', async () => {
    const name = fresh('r')
    await done(write(name, { allowed_domains: 'example.com', allow_bare_domains: true, key_type: 'ec' }))
    const explain = (body: Record<string, unknown>) => node.root.post(`pki/roles/${name}/explain`, body)
    const csr = await csrOf('/CN=example.com', ['subjectAltName=DNS:example.org'])
    const data = dataOf(await done(explain({ csr })))
    expect(data.allowed).toBe(false)
    const refused = (data.checks as { value: string; allowed: boolean }[]).filter(({ allowed }) => !allowed)
    expect(refused.map(({ value }) => value)).toEqual(['example.org'])
    expectRefused(await explain({ csr: 'x' }), 400, 'csr contains no data')
  })

  test('refuses what signing refuses in the certificate, and gives the warnings of sign', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r', { cn_validations: 'disabled', require_cn: false })
    const both = async (body: Record<string, unknown>) => {
      const [said, signed] = [await done(pki.post('roles/r/explain', body)), await pki.post('sign/r', body)]
      return { said: dataOf(said), signed }
    }
    const nameless = await both({ csr: await csrOf('/') })
    expect(nameless.said.allowed).toBe(false)
    const { text, subject } = (nameless.said.checks as { text: string; subject: string }[]).at(-1) ?? {}
    expect([subject, text]).toEqual(['certificate', expect.stringContaining('(subject_empty)')])
    expectRefused(nameless.signed, 400, String(text))
    // The last is a registered ID, which no role can allow.
    const names = altNames(dnsName('a.example'), Buffer.from('88032a0304', 'hex'))
    const good = await both({ csr: forge({ extensions: [names] }), ttl: '1h' })
    expect([good.said.allowed, good.said.warnings]).toEqual([true, warningsOf(good.signed)])
    expect(warningsOf(good.signed)).toEqual([
      expect.stringContaining('1 alternative names of the CSR were left out'),
      expect.stringContaining('(key_usage_key)'),
    ])
    const long = { common_name: 'a'.repeat(65), exclude_cn_from_sans: true }
    const issued = dataOf(await done(pki.post('roles/r/explain', long)))
    expect(issued.checks).toContainEqual(expect.objectContaining({ subject: 'certificate', allowed: false }))
    expectRefused(await pki.post('issue/r', long), 400, expect.stringContaining('(name_length)'))
  })

  test('refuses a CSR that its own key has not signed, as sign does', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    await pki.role('r')
    const csr = pemOf(Buffer.concat([forgeDer().subarray(0, -4), Buffer.alloc(4, 1)]))
    for (const path of ['roles/r/explain', 'sign/r']) {
      expectRefused(await pki.post(path, { csr }), 400, 'request signature invalid')
    }
  })
})
