import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { attributeTypes, writeName } from '../../../src/x509/name.ts'
import { done, useSharedNode } from '../../api/node.ts'
import { caExtensions, certify, ecPair, pemOf } from '../../x509/authority.ts'
import { bundleOf } from '../proof/outside.ts'
import { certificateOf, createAuthority, dataOf, type TestAuthority, warningsOf } from './authority.ts'
import { csrOf, openssl } from './csr.ts'

/** CAs that others made, in ways that this project never would. */

const node = useSharedNode()
const { country, organization, serialNumber } = attributeTypes

/** Imports certificates and keys. @returns the id of the first issuer, and the warnings */
async function importing(pki: TestAuthority, pem_bundle: string) {
  const reply = await done(pki.post('issuers/import/bundle', { pem_bundle }))
  const [id = ''] = dataOf(reply).imported_issuers as string[]
  return { id, warnings: warningsOf(reply) }
}

describe('an issuer whose own name breaks a bound of RFC 5280', () => {
  test.each([
    ['an organization of 70 characters', organization, 'O'.repeat(70), 'organizationName is longer than 64 characters'],
    ['a country of three letters', country, 'USA', 'countryName is longer than 2 characters'],
    ['a serialNumber as UTF8String', serialNumber, 'a_b', 'serialNumber has the wrong string type'],
  ])('is imported and issues with a warning: %s', async (_, type, value, fault) => {
    const pki = await createAuthority(node)
    const key = ecPair()
    const subject = writeName([[{ type, value }], [{ type: attributeTypes.commonName, value: 'Foreign' }]])
    const pem = pemOf(certify({ subject, key, extensions: caExtensions(key, key) }))
    const { warnings } = await importing(pki, `${pem}${key.privateKey.export({ format: 'pem', type: 'pkcs8' })}`)
    expect(warnings.filter((text) => text.includes(fault))).toHaveLength(1)
    await pki.role('r', { key_usage: ['DigitalSignature'] })
    const issued = await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' }))
    expect(warningsOf(issued)).toEqual([`issuer: ${fault} (name_${fault.includes('type') ? 'encoding' : 'length'})`])
    expect(certificateOf(dataOf(issued)).checkIssued(new X509Certificate(pem))).toBe(true)
    const csr = await csrOf('/CN=Sub')
    const signed = await done(pki.post('root/sign-intermediate', { csr, ttl: '1h' }))
    expect(warningsOf(signed).filter((text) => text.includes(fault))).toHaveLength(1)
  })
})

describe('an issuer whose key is of type id-RSASSA-PSS', () => {
  const pss = ['rsa-pss', '-pkeyopt', 'rsa_keygen_bits:2048']
  const pssOnly = ['sha384', 'sha384', '48'].flatMap((value, index) => [
    '-pkeyopt',
    `${['rsa_pss_keygen_md', 'rsa_pss_keygen_mgf1_md', 'rsa_pss_keygen_saltlen'][index]}:${value}`,
  ])
  const algorithmsIn = async (certificate: unknown) =>
    new Set(
      (await openssl(['x509', '-in', 'c', '-noout', '-text'], { c: String(certificate) })).match(
        /rsassaPss|sha\d+WithRSA\w*/g,
      ),
    )
  const hashesIn = async (certificate: unknown) =>
    (await openssl(['x509', '-in', 'c', '-noout', '-text'], { c: String(certificate) })).match(
      /Hash Algorithm: (\w+)/,
    )?.[1]

  test.each([
    ['of any hash', [], 'sha256'],
    ['of SHA-384 alone', pssOnly, 'sha384'],
  ])('%s is linked to it and signs by PSS alone', async (_, parameters, hash) => {
    const pki = await createAuthority(node)
    const ca = bundleOf('Pss', [...pss, ...parameters])
    const { id } = await importing(pki, ca.bundle)
    const { imported_keys: none, existing_keys: keys } = dataOf(
      await done(pki.post('issuers/import/bundle', { pem_bundle: ca.bundle })),
    )
    expect(none).toBeNull()
    expect(dataOf(await pki.get(`issuer/${id}`)).key_id).toBe((keys as string[])[0])
    await pki.role('r')
    const made = [
      dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' }))),
      dataOf(await done(pki.post('sign/r', { csr: await csrOf('/CN=a.example'), ttl: '1h' }))),
      dataOf(await done(pki.post('root/sign-intermediate', { csr: await csrOf('/CN=Sub'), ttl: '1h' }))),
      dataOf(await done(pki.post('root/sign-self-issued', { certificate: bundleOf('Self').certificate }))),
    ]
    for (const { certificate } of made) {
      expect(new X509Certificate(String(certificate)).verify(new X509Certificate(ca.certificate).publicKey)).toBe(true)
      expect(await algorithmsIn(certificate)).toEqual(new Set(['rsassaPss']))
      expect(await hashesIn(certificate)).toBe(hash)
    }
  })

  test('signs its revocation lists and OCSP answers by PSS, so that openssl verifies them', async () => {
    const pki = await createAuthority(node)
    const ca = bundleOf('Pss', pss)
    const { id } = await importing(pki, ca.bundle)
    await done(pki.patch(`issuer/${id}`, { revocation_signature_algorithm: 'SHA256WithRSAPSS' }))
    const { crl } = dataOf(await done(pki.get(`issuer/${id}/crl`)))
    const files = { ca: ca.certificate, crl: String(crl) }
    await openssl(['crl', '-in', 'crl', '-CAfile', 'ca', '-verify', '-noout'], files)
    expect(await openssl(['crl', '-in', 'crl', '-noout', '-text'], files)).toContain('rsassaPss')
    await pki.role('r')
    const { certificate } = dataOf(await done(pki.post('issue/r', { common_name: 'a.example', ttl: '1h' })))
    const leaf = { ca: ca.certificate, leaf: String(certificate) }
    const query = ['ocsp', '-issuer', 'ca', '-cert', 'leaf', '-CAfile', 'ca', '-no_nonce']
    const url = `${node.url}/v1/${pki.path}/ocsp`
    expect(await openssl([...query, '-url', url], leaf)).toContain('leaf: good')
  })

  test('is linked to a key that is imported later', async () => {
    const pki = await createAuthority(node)
    const ca = bundleOf('Pss', pss)
    const { id } = await importing(pki, ca.certificate)
    expect(dataOf(await pki.get(`issuer/${id}`)).key_id).toBe('')
    const key = dataOf(await done(pki.post('keys/import', { pem_bundle: ca.privateKey })))
    expect(dataOf(await pki.get(`issuer/${id}`)).key_id).toBe(key.key_id)
  })
})

describe('an issuer whose certificate does not allow cRLSign', () => {
  test.each(['patch', 'post'] as const)('returns to the other uses when usage is null: %s', async (method) => {
    const pki = await createAuthority(node)
    const { id } = await importing(pki, bundleOf('No lists', undefined, 'keyCertSign').bundle)
    const usual = 'issuing-certificates,ocsp-signing,read-only'
    expect(dataOf(await pki.get(`issuer/${id}`)).usage).toBe(usual)
    await done(pki.patch(`issuer/${id}`, { usage: 'read-only' }))
    expect(dataOf(await done(pki[method](`issuer/${id}`, { usage: null }))).usage).toBe(usual)
  })
})
