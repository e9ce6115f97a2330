import { describe, expect, test } from 'vitest'
import { done, expectData, expectRefused, useSharedNode } from '../../api/node.ts'
import { createAuthority, errorsOf, type TestAuthority, warningsOf } from '../api/authority.ts'
import { csrOf } from '../api/csr.ts'
import { altNames, dnsName, forge, forgeDer, pemOf } from '../proof/forge.ts'

const node = useSharedNode()
const dataOf = (reply: { body: unknown }) => (reply.body as { data: Record<string, unknown> }).data

describe('explaining a role', () => {
  test('answers for every name whether it is allowed, and which setting would allow it', async () => {
    const pki = await createAuthority(node)
    const { issuer_id } = await pki.root()
    await done(pki.post('roles/r', { allowed_domains: 'example.com', allow_subdomains: true }))
    const asked = {
      common_name: 'a.example.com',
      alt_names: 'example.com,b.example.com',
      uri_sans: 'urn:a:b',
      ttl: '1h',
    }
    const reply = await done(pki.post('roles/r/explain', asked))
    const allowed = (subject: string, value: string) => ({ subject, value, allowed: true })
    expectData(reply, {
      allowed: false,
      checks: [
        allowed('issuer', String(issuer_id)),
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
    const pki = await createAuthority(node)
    await pki.root()
    await done(node.root.post(`sys/mounts/${pki.path}/tune`, { max_lease_ttl: '1h' }))
    const role = { allowed_domains: '{{identity.entity.metadata.team}}.com', allowed_domains_template: true }
    await done(pki.post('roles/r', { ...role, allow_bare_domains: true }))
    const token = await done(node.root.post('auth/token/create', { policies: ['root'], meta: { team: 'blue' } }))
    const client = node.client(token.string('auth.client_token'))
    const explain = (common_name: string) => client.post(`${pki.path}/roles/r/explain`, { common_name, ttl: '2h' })
    expect((await done(explain('blue.com'))).body).toMatchObject({
      data: {
        allowed: true,
        warnings: ['TTL "2h0m0s" is longer than permitted maxTTL "1h0m0s", so maxTTL is being used'],
      },
    })
    expect((await done(explain('red.com'))).body).toMatchObject({ data: { allowed: false } })
  })

  test('takes the names of issue as they come: alt_names is one text', async () => {
    const pki = await createAuthority(node)
    const { issuer_id } = await pki.root()
    await pki.role('r', { key_type: 'rsa' })
    const explain = (body: Record<string, unknown>) => pki.post('roles/r/explain', body)
    const lists = { ip_sans: '::1,10.0.0.1', other_sans: ['1.2;UTF8:a,b'], user_ids: 'u', serial_number: 's' }
    const data = dataOf(
      await done(explain({ common_name: 'a', exclude_cn_from_sans: 'true', not_after: 'x', ...lists })),
    )
    const subjects = (data.checks as { subject: string; value: string }[]).map(
      ({ subject, value }) => `${subject} ${value}`,
    )
    expect(subjects).toEqual([
      `issuer ${String(issuer_id)}`,
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
    const pki = await createAuthority(node)
    await pki.root()
    await done(pki.post('roles/r', { allowed_domains: 'example.com', allow_bare_domains: true, key_type: 'ec' }))
    const explain = (body: Record<string, unknown>) => pki.post('roles/r/explain', body)
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

  describe('sees the issuer as issue and sign do:', () => {
    const asked = { common_name: 'a.example.com', ttl: '1h' }
    type Answers = { allowed: boolean; checks: { subject: string; allowed: boolean; text?: string }[] }

    /** Both answers to one request, which must agree. @returns what explain refuses */
    async function refusedBy(pki: TestAuthority, body: Record<string, unknown>, by = 'default'): Promise<unknown[]> {
      const explained = dataOf(await done(pki.post('roles/r/explain', { ...body, issuer_ref: by }))) as Answers
      const issued = await pki.post(`issuer/${by}/issue/r`, body)
      const refusals = explained.checks.filter(({ allowed }) => !allowed)
      expect(issued.status).toBe(explained.allowed ? 200 : 400)
      if (!explained.allowed) expect(errorsOf(issued)).toEqual([refusals[0]?.text])
      return refusals.map(({ subject, text }) => [subject, text])
    }

    test('there is none', async () => {
      const pki = await createAuthority(node)
      await pki.role('r')
      expect(await refusedBy(pki, asked)).toEqual([['issuer', 'no default issuer currently configured']])
      expect(await refusedBy(pki, asked, 'x')).toEqual([
        ['issuer', expect.stringContaining('unable to find PKI issuer for reference: x')],
      ])
    })

    test('it may not issue, and the role names another', async () => {
      const pki = await createAuthority(node)
      await pki.root({ issuer_name: 'closed' })
      await pki.root({ issuer_name: 'open', common_name: 'Open' })
      await done(pki.patch('issuer/closed', { usage: 'read-only,crl-signing' }))
      await pki.role('r', { issuer_ref: 'open' })
      expect(await refusedBy(pki, asked, 'closed')).toEqual([
        ['issuer', expect.stringContaining('requested usage issuing-certificates for issuer')],
      ])
      expect(dataOf(await done(pki.post('roles/r/explain', asked))).allowed).toBe(true)
    })

    test('it ends before the certificate would', async () => {
      const pki = await createAuthority(node)
      await pki.root({ ttl: '2h' })
      await pki.role('r')
      expect(await refusedBy(pki, { ...asked, ttl: '3h' })).toEqual([
        ['validity', expect.stringContaining('beyond the expiration of the CA certificate')],
      ])
      await done(pki.patch('issuer/default', { leaf_not_after_behavior: 'truncate' }))
      expect(await refusedBy(pki, { ...asked, ttl: '3h' })).toEqual([])
    })

    test('it or one above it constrains names', async () => {
      const pki = await createAuthority(node)
      await pki.root({ permitted_dns_domains: 'example.org' })
      await pki.role('r')
      expect(await refusedBy(pki, asked)).toEqual([
        ['certificate', expect.stringContaining('outside the permitted name constraints example.org')],
      ])
      expect(await refusedBy(pki, { ...asked, common_name: 'a.example.org' })).toEqual([])
    })

    test('its URLs cannot be completed', async () => {
      const pki = await createAuthority(node)
      await pki.root()
      await pki.role('r')
      const urls = { issuing_certificates: '{{cluster_aia_path}}/issuer/{{issuer_id}}/der', enable_templating: true }
      await done(pki.post('config/urls', urls))
      expect(await refusedBy(pki, asked)).toEqual([
        ['certificate', expect.stringContaining('unable to template AIA URLs')],
      ])
    })
  })
})
