import { describe, expect, test } from 'vitest'
import { readCertificate } from '../../../src/x509/certificate.ts'
import { entrySerials } from '../../../src/x509/crlentry.ts'
import { type Crl, readCrl, verifyCrl } from '../../../src/x509/crlreader.ts'
import { crlNumber, deltaCrlIndicator } from '../../../src/x509/extensions/crlnumber.ts'
import { writeAuthorityKeyIdentifier } from '../../../src/x509/extensions/keyidentifier.ts'
import { reasonCode } from '../../../src/x509/extensions/reasoncode.ts'
import { withColons } from '../../../src/x509/serial.ts'
import { signatureAlgorithmOf } from '../../../src/x509/signature.ts'
import { base64, done, useSharedNode } from '../../api/node.ts'
import {
  type Answer,
  certificateOf,
  createAuthority,
  dataOf,
  errorsOf,
  type TestAuthority,
  warningsOf,
} from './authority.ts'
import { openssl } from './csr.ts'

const node = useSharedNode()
const path = 'issuer/default/sign-revocation-list'

const listOf = ({ crl }: Answer): Crl =>
  readCrl(Buffer.from(String(crl).replaceAll(/-----[^-]+-----|\s/g, ''), 'base64'))
const rootOf = (data: Answer) => readCertificate(certificateOf(data).raw)

describe('sign-revocation-list', () => {
  test('signs the entries and extensions of the request as they are', async () => {
    const pki = await createAuthority(node)
    const root = rootOf(await pki.root())
    const extensions = [
      { id: '2.5.29.100', critical: 'true', value: base64('hello') },
      { id: '1.2.3', value: base64(Buffer.from('0500', 'hex')) },
    ]
    const before = Math.floor(Date.now() / 1000) * 1000
    const data = dataOf(
      await done(
        pki.post(path, {
          crl_number: 7,
          delta_crl_base_number: 5,
          next_update: '1h',
          extensions,
          revoked_certs: [
            { serial_number: '37:60:16:E4', revocation_time: '1668614976' },
            { serial_number: '00-37.60 16e5', revocation_time: 1668614977, extensions: [] },
            {
              serial_number: 'ff',
              revocation_time: '2022-11-16T16:09:36.789Z',
              extensions: [{ id: '2.5.29.21', value: base64(reasonCode(1).value) }, extensions[0]],
            },
          ],
        }),
      ),
    )
    expect(data.crl).toMatch(/^-----BEGIN X509 CRL-----\n[\s\S]+\n-----END X509 CRL-----\n$/)
    const crl = listOf(data)
    const given = [
      { oid: '2.5.29.100', critical: true, value: Buffer.from('hello') },
      { oid: '1.2.3', critical: false, value: Buffer.from('0500', 'hex') },
    ]
    expect(crl.extensions).toEqual([
      writeAuthorityKeyIdentifier(root.subjectKeyId ?? Buffer.alloc(0)),
      crlNumber(7),
      deltaCrlIndicator(5),
      ...given,
    ])
    const entries = [...entrySerials(crl.entries)]
    expect(entries.map(({ serial, revokedAt, extensions }) => [withColons(serial), revokedAt, extensions])).toEqual([
      ['37:60:16:e4', 1668614976000, []],
      ['37:60:16:e5', 1668614977000, []],
      ['ff', Date.UTC(2022, 10, 16, 16, 9, 36), [reasonCode(1), given[0]]],
    ])
    expect(crl.issuer).toEqual(root.subject)
    expect(verifyCrl(crl, root.publicKey())).toBe(true)
    expect(crl.thisUpdate).toBeGreaterThanOrEqual(before)
    expect((crl.nextUpdate ?? 0) - crl.thisUpdate).toBe(3_600_000)
  })

  test('signs an empty list, due in 72 hours, as DER when that is asked for', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const data = dataOf(await done(pki.post(path, { crl_number: 0, format: 'der' })))
    const crl = readCrl(Buffer.from(String(data.crl), 'base64'))
    expect([crl.count, (crl.nextUpdate ?? 0) - crl.thisUpdate]).toEqual([0, 72 * 3_600_000])
    expect(crl.extensions.map(({ oid }) => oid)).toEqual(['2.5.29.35', '2.5.29.20'])
  })

  test('openssl revokes by the list', async () => {
    const pki = await createAuthority(node)
    const ca = await pki.root()
    await pki.role('r')
    const leaf = dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' })))
    const check = async (serial: unknown): Promise<string> => {
      const entry = { serial_number: serial, revocation_time: 1_700_000_000 }
      const { crl } = dataOf(await done(pki.post(path, { crl_number: 1, revoked_certs: [entry] })))
      const files = { ca: String(ca.certificate), crl: String(crl), leaf: String(leaf.certificate) }
      return openssl(['verify', '-crl_check', '-CAfile', 'ca', '-CRLfile', 'crl', 'leaf'], files)
    }
    expect(await check('01')).toContain('leaf: OK')
    await expect(check(leaf.serial_number)).rejects.toThrow()
  })

  test('10,000 entries are signed, listed in one list', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    const revoked_certs = Array.from({ length: 10_000 }, (_, index) => ({
      serial_number: (index + 0x10000000).toString(16),
      revocation_time: 1_700_000_000,
    }))
    expect(listOf(dataOf(await done(pki.post(path, { crl_number: 1, revoked_certs })))).count).toBe(10_000)
  })
})

describe('the signature of a list', () => {
  const nameOf = (data: Answer): string | undefined => signatureAlgorithmOf(listOf(data).algorithm)?.name
  const sign = async (pki: TestAuthority): Promise<Answer> => dataOf(await done(pki.post(path, { crl_number: 1 })))

  test.each([
    [{ key_type: 'rsa', key_bits: 2048 }, '', 'SHA256WithRSA'],
    [{ key_type: 'rsa', key_bits: 2048 }, 'SHA384WithRSAPSS', 'SHA384WithRSAPSS'],
    [{ key_type: 'ec', key_bits: 384 }, '', 'ECDSAWithSHA384'],
    [{ key_type: 'ec', key_bits: 384 }, 'ECDSAWithSHA512', 'ECDSAWithSHA512'],
    [{ key_type: 'ed25519' }, '', 'Ed25519'],
  ])('of a root %j with revocation_signature_algorithm %j is %s', async (key, algorithm, name) => {
    const pki = await createAuthority(node)
    const root = rootOf(await pki.root(key))
    if (algorithm !== '') await done(pki.patch('issuer/default', { revocation_signature_algorithm: algorithm }))
    const data = await sign(pki)
    expect(nameOf(data)).toBe(name)
    expect(verifyCrl(listOf(data), root.publicKey())).toBe(true)
  })
})

describe('refused requests', () => {
  const entry = (fields: Readonly<Record<string, unknown>>) => ({
    revoked_certs: [{ serial_number: '01', revocation_time: '1668614976', ...fields }],
  })
  const one = { id: '1.2.3', value: 'BQA=' }
  const nested = (depth: number): unknown => (depth === 0 ? 'BQA=' : [nested(depth - 1)])

  const refused: readonly (readonly [Readonly<Record<string, unknown>>, string | RegExp])[] = [
    [{ crl_number: undefined }, 'missing crl_number parameter'],
    [{ crl_number: -1 }, 'crl_number parameter must be 0 or greater'],
    [{ crl_number: '9007199254740992' }, /^Field validation failed: .*"crl_number"/],
    [{ crl_number: '1461501637330902918203684832716283019655932542975' }, /^Field validation failed: .*"crl_number"/],
    [{ crl_number: 1.5 }, /^Field validation failed: .*"crl_number"/],
    [{ crl_number: {} }, /^Field validation failed: .*"crl_number"/],
    [{ delta_crl_base_number: -2 }, 'delta_crl_base_number parameter must be -1 or greater'],
    [{ next_update: '0s' }, 'next_update parameter must be greater than 0'],
    [{ next_update: '-5m' }, 'next_update parameter must be greater than 0'],
    [{ next_update: 'soon' }, /^invalid value for next_update: /],
    [{ next_update: '--5' }, /^invalid value for next_update: /],
    [{ next_update: '9999999999h' }, /^invalid value for next_update: /],
    [{ next_update: '' }, 'next_update parameter must be greater than 0'],
    [{ format: 'zz' }, 'unknown format value of zz'],
    [{ extensions: 'x' }, "'extensions' field did not contain a list"],
    [{ extensions: [7] }, 'failed parsing extension entry 0: expected a map'],
    [{ extensions: [{ value: 'BQA=' }] }, 'failed parsing extension entry 0: missing id field'],
    [{ extensions: [{ id: '1.2.3' }] }, "failed parsing extension entry 0: missing 'value' field"],
    [{ extensions: [one, { ...one, value: 'a' }] }, "failed parsing extension entry 1: 'value' field is not base64"],
    [
      { extensions: [{ ...one, value: nested(30) }] },
      "failed parsing extension entry 0: 'value' field is not a string",
    ],
    [
      { extensions: [{ ...one, id: '9.9' }] },
      /^failed parsing extension entry 0: 'id' field is not an object identifier/,
    ],
    [
      { extensions: [{ ...one, id: `2.${'9'.repeat(500)}` }] },
      /^failed parsing extension entry 0: 'id' field is not an/,
    ],
    [{ extensions: [{ ...one, critical: 'perhaps' }] }, /^failed parsing extension entry 0: 'critical' field: /],
    [{ extensions: [one, one] }, 'failed parsing extension entry 1: duplicate extension id: 1.2.3'],
    [{ extensions: Array(101).fill(one) }, 'more than 100 extensions'],
    ...[
      ['2.5.29.35', 'authority key'],
      ['2.5.29.20', 'crl number'],
      ['2.5.29.27', 'delta crl'],
    ].map(
      ([id, name]) =>
        [
          { extensions: [{ ...one, id }] },
          `failed parsing extension entry 0: ${name} object identifier (${id}) is reserved`,
        ] as const,
    ),
    [{ revoked_certs: 'x' }, "'revoked_certs' field did not contain a list"],
    [{ revoked_certs: [7] }, 'failed parsing revoked_certs from entry 0: expected a map'],
    [{ revoked_certs: [{}] }, "failed parsing serial_number from entry 0: missing 'serial_number' field"],
    [entry({ serial_number: '::' }), "failed parsing serial_number from entry 0: 'serial_number' was not a hex number"],
    [
      entry({ serial_number: '123' }),
      "failed parsing serial_number from entry 0: 'serial_number' was not a hex number",
    ],
    [
      entry({ serial_number: '-0x1' }),
      "failed parsing serial_number from entry 0: 'serial_number' was not a hex number",
    ],
    [entry({ serial_number: 12 }), "failed parsing serial_number from entry 0: 'serial_number' field was not a string"],
    [
      entry({ serial_number: '01'.repeat(21) }),
      "failed parsing serial_number from entry 0: 'serial_number' has more than 20 bytes",
    ],
    [
      entry({ revocation_time: undefined }),
      "failed parsing revocation_time from entry 0: missing 'revocation_time' field",
    ],
    [entry({ revocation_time: 'x' }), /^failed parsing revocation_time from entry 0: /],
    [entry({ revocation_time: '2022-02-30T00:00:00Z' }), /^failed parsing revocation_time from entry 0: /],
    [entry({ revocation_time: -1 }), /^failed parsing revocation_time from entry 0: .*1970/],
    [entry({ revocation_time: '1969-12-31T00:00:00Z' }), /^failed parsing revocation_time from entry 0: .*1970/],
    [entry({ revocation_time: '999999999999' }), /^failed parsing revocation_time from entry 0: .*9999/],
    [entry({ revocation_time: 1e300 }), /^failed parsing revocation_time from entry 0: /],
    [entry({ revocation_time: [1] }), /^failed parsing revocation_time from entry 0: /],
    [entry({ extensions: {} }), "failed parsing extensions from entry 0: 'extensions' field did not contain a list"],
    [
      entry({ extensions: [{}] }),
      'failed parsing extensions from entry 0: failed parsing extension entry 0: missing id field',
    ],
    [
      { revoked_certs: ['01', '00:01'].map((serial_number) => ({ serial_number, revocation_time: 1 })) },
      'duplicate serial number: 01, original entry 0 and 1',
    ],
    [{ revoked_certs: Array(250_001).fill(0) }, /^revoked_certs has 250001 entries; at most 250000/],
  ]

  test('of sign-revocation-list is named, and is the caller’s', async () => {
    const pki = await createAuthority(node)
    await pki.root()
    for (const [fields, text] of refused) {
      const reply = await pki.post(path, { crl_number: 1, ...fields })
      const label = JSON.stringify(fields).slice(0, 200)
      expect([label, reply.status]).toEqual([label, 400])
      if (typeof text === 'string') expect(errorsOf(reply)).toEqual([text])
      else expect(errorsOf(reply)[0], label).toMatch(text)
    }
  })

  test('is an issuer that is unknown, may not sign lists, or has no key', async () => {
    const pki = await createAuthority(node)
    const root = await pki.root()
    const sign = (reference: string) => pki.post(`issuer/${reference}/sign-revocation-list`, { crl_number: 1 })
    const unknown = await sign('nobody')
    expect([unknown.status, errorsOf(unknown)]).toEqual([
      400,
      ['failed to resolve issuer issuer_ref: unable to find PKI issuer for reference: nobody'],
    ])
    await done(pki.patch(`issuer/${root.issuer_id}`, { usage: 'issuing-certificates' }))
    const useless = await sign('default')
    expect([useless.status, errorsOf(useless)[0]]).toEqual([
      400,
      expect.stringContaining('requested usage crl-signing'),
    ])
    const other = await createAuthority(node)
    await done(other.post('issuers/import/cert', { pem_bundle: root.certificate }))
    const keyless = await other.post(path, { crl_number: 1 })
    expect(keyless.status).toBe(400)
    expect(warningsOf(keyless)).toEqual([])
  })
})
