import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { attributeTypes, writeName } from '../../../src/x509/name.ts'
import { done, useNode } from '../../api/node.ts'
import { caExtensions, certify, ecPair, pemOf } from '../../x509/authority.ts'
import { bundleOf } from '../proof/outside.ts'
import { certificateOf, createAuthority, dataOf, type TestAuthority, warningsOf } from './authority.ts'
import { csrOf } from './csr.ts'

/** CAs that others made, in ways that this project never would. */

const node = useNode()
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
