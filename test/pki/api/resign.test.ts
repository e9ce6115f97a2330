import { createPrivateKey, createPublicKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { writePem } from '../../../src/crypto/pem.ts'
import { readCertificate } from '../../../src/x509/certificate.ts'
import { entrySerials } from '../../../src/x509/crlentry.ts'
import { readCrl, verifyCrl } from '../../../src/x509/crlreader.ts'
import { crlNumber, deltaCrlIndicator } from '../../../src/x509/extensions/crlnumber.ts'
import { issuingDistributionPoint } from '../../../src/x509/extensions/issuingdistributionpoint.ts'
import { writeAuthorityKeyIdentifier } from '../../../src/x509/extensions/keyidentifier.ts'
import { crlReasons } from '../../../src/x509/extensions/reasoncode.ts'
import { withColons } from '../../../src/x509/serial.ts'
import { done, useSharedNode } from '../../api/node.ts'
import { ecPair, named, type Pair } from '../../x509/authority.ts'
import { makeCrl, type WantedCrl } from '../../x509/lists.ts'
import { certificateOf, createAuthority, dataOf, errorsOf, type TestAuthority, warningsOf } from './authority.ts'

const node = useSharedNode()
const path = 'issuer/default/resign-crls'
const pemOf = (der: Buffer): string => writePem('X509 CRL', der)

/** A root whose key the test has too, to sign lists of other clusters of the same issuer. */
async function sharedRoot() {
  const pki = await createAuthority(node)
  const data = dataOf(await done(pki.post('root/generate/exported', { common_name: 'Shared', key_type: 'ec' })))
  const privateKey = createPrivateKey(String(data.private_key))
  const key: Pair = { privateKey, publicKey: createPublicKey(privateKey) }
  const certificate = readCertificate(certificateOf(data).raw)
  const list = (wanted: Partial<WantedCrl> = {}): string =>
    pemOf(makeCrl({ issuer: certificate.subject, key, ...wanted }))
  return { pki, certificate, list }
}

/** Combines the lists and reads the result. */
async function resign(pki: TestAuthority, crls: readonly string[], fields: Readonly<Record<string, unknown>> = {}) {
  const reply = await done(pki.post(path, { crls, crl_number: 9, format: 'der', ...fields }))
  const crl = readCrl(Buffer.from(String(dataOf(reply).crl), 'base64'))
  const entries = [...entrySerials(crl.entries)]
  const shown = entries.map(({ serial, revokedAt, reason }) => [withColons(serial), revokedAt, reason])
  return { crl, entries: shown, warnings: warningsOf(reply) }
}

const at = Date.UTC(2026, 0, 2)
const entry = (byte: number, days = 0, reason?: number) => ({
  serial: Buffer.from([byte]),
  revokedAt: at + days * 86_400_000,
  reason,
})

describe('resign-crls', () => {
  test('combines lists of its issuer into one with the numbers of the request', async () => {
    const { pki, certificate, list } = await sharedRoot()
    const first = list({ entries: [entry(1), entry(2, 1, crlReasons.keyCompromise)], extensions: [crlNumber(3)] })
    const second = list({
      entries: [entry(3)],
      extensions: [deltaCrlIndicator(4), issuingDistributionPoint(['http://a'])],
    })
    const { crl, entries, warnings } = await resign(pki, [first, second], {
      delta_crl_base_number: 0,
      next_update: '1h',
    })
    expect(entries).toEqual([
      ['01', at, undefined],
      ['02', at + 86_400_000, crlReasons.keyCompromise],
      ['03', at, undefined],
    ])
    expect(warnings).toEqual([])
    expect(crl.extensions).toEqual([
      writeAuthorityKeyIdentifier(certificate.subjectKeyId ?? Buffer.alloc(0)),
      crlNumber(9),
      deltaCrlIndicator(0),
    ])
    expect((crl.nextUpdate ?? 0) - crl.thisUpdate).toBe(3_600_000)
    expect(verifyCrl(crl, certificate.publicKey())).toBe(true)
  })

  test('keeps the earliest revocation of a serial number, and warns that lists disagree', async () => {
    const { pki, list } = await sharedRoot()
    const lists = [list({ entries: [entry(1, 2, 1), entry(2)] }), list({ entries: [entry(1, 1), entry(2)] })]
    const { entries, warnings } = await resign(pki, lists)
    expect(entries).toEqual([
      ['01', at + 86_400_000, undefined],
      ['02', at, undefined],
    ])
    expect(warnings).toEqual([
      'Duplicate serial 01 with different revocation times detected, using oldest revocation time',
    ])
  })

  test('keeps the reason of an entry and drops its other extensions', async () => {
    const { pki, list } = await sharedRoot()
    const invalidityDate = {
      oid: '2.5.29.24',
      critical: false,
      value: Buffer.from('180f32303236303130313030303030305a', 'hex'),
    }
    const given = list({ entries: [{ ...entry(1, 0, crlReasons.superseded), extensions: [invalidityDate] }] })
    const { entries, crl } = await resign(pki, [given])
    expect(entries).toEqual([['01', at, crlReasons.superseded]])
    expect([...entrySerials(crl.entries)].flatMap(({ extensions }) => extensions).map(({ oid }) => oid)).toEqual([
      '2.5.29.21',
    ])
  })

  test('names the lists that are signed by SHA-1', async () => {
    const { pki, list } = await sharedRoot()
    const { entries, warnings } = await resign(pki, [list(), list({ hash: 'sha1', entries: [entry(1)] })])
    expect(entries).toHaveLength(1)
    expect(warnings).toEqual(['CRL index: 1 is signed by ECDSAWithSHA1: such signatures can be forged'])
  })

  test('names 100 serial numbers that lists disagree on, and how many more there are', async () => {
    const { pki, list } = await sharedRoot()
    const many = (days: number) => list({ entries: Array.from({ length: 120 }, (_, index) => entry(index, days)) })
    const { entries, warnings } = await resign(pki, [many(1), many(0)])
    expect(entries.every(([, revokedAt]) => revokedAt === at)).toBe(true)
    expect(warnings).toHaveLength(101)
    expect(warnings.at(-1)).toBe('20 more serials have different revocation times; the oldest of each is used')
  })

  test('answers PEM with a newline at its end; no lists make an empty one', async () => {
    const { pki } = await sharedRoot()
    const { crl } = dataOf(await done(pki.post(path, { crls: [], crl_number: '3' })))
    expect(crl).toMatch(/^-----BEGIN X509 CRL-----\n[\s\S]+\n-----END X509 CRL-----\n$/)
  })

  test('combines 100,000 entries in 6 MB of PEM', async () => {
    const { pki, list } = await sharedRoot()
    const entries = Array.from({ length: 100_000 }, (_, index) => {
      const serial = Buffer.alloc(20, 0x41)
      serial.writeUInt32BE(index, 16)
      return { serial, revokedAt: at }
    })
    const { crl } = await resign(pki, [list({ entries }), list({ entries: entries.slice(0, 10) })])
    expect(crl.count).toBe(100_000)
  })

  test('accepts the output of sign-revocation-list', async () => {
    const { pki } = await sharedRoot()
    const revoked_certs = [{ serial_number: '0a', revocation_time: at / 1000 }]
    const { crl } = dataOf(
      await done(pki.post('issuer/default/sign-revocation-list', { crl_number: 1, revoked_certs })),
    )
    expect((await resign(pki, [String(crl)])).entries).toEqual([['0a', at, undefined]])
  })
})

describe('resign-crls refuses', () => {
  const mustBePem = (index: number) => `failed decoding crl ${index}: invalid crl; should be one PEM block only`

  test('lists that are missing, not PEM, or damaged', async () => {
    const { pki, list } = await sharedRoot()
    const good = list({ entries: [entry(1)] })
    const damaged = pemOf(Buffer.from(good.split('\n').slice(1, -1).join(''), 'base64').subarray(0, -1))
    const refused: readonly (readonly [Readonly<Record<string, unknown>>, string | RegExp])[] = [
      [{ crls: undefined }, 'missing crls parameter'],
      [{ crl_number: undefined }, 'missing crl_number parameter'],
      [{ crls: {} }, /^Field validation failed: .*"crls"/],
      [{ crls: [{}] }, /^Field validation failed: .*"crls"/],
      [{ crls: '' }, mustBePem(0)],
      [{ crls: [good, 'x'] }, mustBePem(1)],
      [{ crls: [`${good}\n${good}`] }, mustBePem(0)],
      [{ crls: [good.replaceAll('X509 CRL', 'CERTIFICATE')] }, mustBePem(0)],
      [{ crls: [good.replace('\n', '\n*')] }, mustBePem(0)],
      [{ crls: [good.slice(0, 100)] }, mustBePem(0)],
      [{ crls: [damaged] }, /^failed decoding crl 0: CRL: /],
      [{ crls: [pemOf(Buffer.alloc(0))] }, /^failed decoding crl 0: CRL: /],
      [{ crls: Array(1001).fill('x') }, 'at most 1000 CRLs can be combined, not 1001'],
      [{ crls: [good], format: 'pem_bundle' }, 'unknown format value of pem_bundle'],
    ]
    for (const [fields, text] of refused) {
      const reply = await pki.post(path, { crls: [good], crl_number: 1, ...fields })
      const label = JSON.stringify(fields).slice(0, 200)
      expect([label, reply.status]).toEqual([label, 400])
      if (typeof text === 'string') expect(errorsOf(reply)).toEqual([text])
      else expect(errorsOf(reply)[0], label).toMatch(text)
    }
  })

  test('lists that the issuer did not sign', async () => {
    const { pki, certificate, list } = await sharedRoot()
    const { subject } = certificate
    const good = Buffer.from(
      list({ entries: [entry(1)] })
        .split('\n')
        .slice(1, -1)
        .join(''),
      'base64',
    )
    const changed = Buffer.from(good)
    changed.writeUInt8((changed.at(-1) ?? 0) ^ 1, changed.length - 1)
    const strangers = [
      makeCrl({ issuer: subject, key: ecPair(), entries: [entry(2)] }),
      Buffer.from(
        list({ issuer: named('Shared elsewhere') })
          .split('\n')
          .slice(1, -1)
          .join(''),
        'base64',
      ),
      changed,
    ]
    for (const stranger of strangers) {
      const reply = await pki.post(path, { crls: [pemOf(good), pemOf(stranger)], crl_number: 1 })
      expect([reply.status, errorsOf(reply)]).toEqual([400, ['CRL index: 1 was not signed by requested issuer']])
    }
  })

  test('lists and entries with any meaning but the revoked certificates of the issuer', async () => {
    const { pki, list } = await sharedRoot()
    const odd = { oid: '1.2.3', critical: true, value: Buffer.from('0500', 'hex') }
    const indirect = { oid: '2.5.29.28', critical: true, value: Buffer.from('30038401ff', 'hex') }
    const malformed = { ...indirect, value: Buffer.from('3003', 'hex') }
    const certificateIssuer = { oid: '2.5.29.29', critical: true, value: Buffer.from('3000', 'hex') }
    const refused: readonly (readonly [Partial<WantedCrl>, string | RegExp])[] = [
      [{ extensions: [odd] }, 'CRL index: 0 has the critical extension 1.2.3, which is not known here'],
      [{ extensions: [indirect] }, 'CRL index: 0 is an indirect CRL, which is not supported'],
      [{ extensions: [malformed] }, /^failed decoding crl 0: issuingDistributionPoint: /],
      [
        { entries: [{ ...entry(1), extensions: [certificateIssuer] }] },
        "CRL index: 0, entry 01 is of another issuer's certificate: indirect CRLs are not supported",
      ],
      [
        { entries: [{ ...entry(1), extensions: [odd] }] },
        'CRL index: 0, entry 01 has the critical extension 1.2.3, which is not known here',
      ],
      [
        { entries: [entry(1, 0, crlReasons.removeFromCRL)] },
        'CRL index: 0, entry 01 has the reason removeFromCRL: only revocations can be combined',
      ],
    ]
    for (const [wanted, text] of refused) {
      const reply = await pki.post(path, { crls: [list(wanted)], crl_number: 1 })
      expect(reply.status).toBe(400)
      expect(errorsOf(reply)[0]).toMatch(typeof text === 'string' ? new RegExp(`^${text}$`) : text)
    }
  })
})
