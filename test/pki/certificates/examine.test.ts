import { describe, expect, test } from 'vitest'
import { damagedCertificate, describeDifferences, examine } from '../../../src/engines/pki/certificates/examine.ts'
import { createCa } from '../revocation/ca.ts'

const ca = createCa('Root')
const issuers = new Map([
  ['root', ca],
  ['twin', createCa('Root', undefined, ca.pair)],
  ['namesake', createCa('Root')],
  ['other', createCa('Other')],
])
const leaf = ca.sign()
const row = { der: leaf.der, serial: leaf.serial.toString('hex'), notAfter: leaf.notAfter, issuer: 'root' }

describe('a stored certificate', () => {
  test.each(['root', 'twin'])('that is what its row says has the issuer %s that the row names', (issuer) => {
    const { certificate, issuer: found, differences } = examine({ ...row, issuer }, issuers)
    expect(certificate?.der.equals(leaf.der)).toBe(true)
    expect(found).toBe(issuers.get(issuer))
    expect([...differences]).toEqual([])
  })

  test('tells nothing about an issuer that the mount no longer has', () => {
    const { certificate, issuer, differences } = examine({ ...row, issuer: 'gone' }, issuers)
    expect([certificate?.serial.toString('hex'), issuer, differences.size]).toEqual([row.serial, undefined, 0])
  })

  test.each([
    ['another serial number', { serial: `${row.serial}00` }, ['serial'], 'it has another serial number'],
    ['a later end', { notAfter: row.notAfter + 1 }, ['end'], 'it expires at another time'],
    ['an earlier end', { notAfter: row.notAfter - 1000 }, ['end'], 'it expires at another time'],
    ['an issuer of another name', { issuer: 'other' }, ['issuer'], 'its issuer has not signed it'],
    ['an issuer of this name and another key', { issuer: 'namesake' }, ['issuer'], 'its issuer has not signed it'],
    [
      'the bytes of another certificate',
      { der: createCa('Root').sign({ notAfter: row.notAfter }).der },
      ['serial', 'issuer'],
      'it has another serial number, its issuer has not signed it',
    ],
    ['bytes that are no certificate', { der: Buffer.from('x') }, ['bytes'], 'it is not a certificate'],
  ])('differs from a row with %s', (_, edit, expected, text) => {
    const { issuer, differences } = examine({ ...row, ...edit }, issuers)
    expect(issuer !== undefined).toBe(!differences.has('issuer') && !differences.has('bytes'))
    expect([...differences]).toEqual(expected)
    expect(describeDifferences(differences)).toBe(text)
  })

  test('whose bytes are not a certificate has neither certificate nor issuer', () => {
    expect(examine({ ...row, der: Buffer.alloc(0) }, issuers)).toMatchObject({
      certificate: undefined,
      issuer: undefined,
    })
  })

  test('that was edited names its row and the differences', () => {
    const stored = { ...row, id: 'the-row', mount: 'm', site: 'default', createdAt: 0, notAfter: 0 }
    const damaged = damagedCertificate(stored, examine(stored, issuers).differences)
    expect(damaged).toMatchObject({ table: 'pki_certificates', id: 'the-row' })
    expect(damaged.message).toContain('it expires at another time')
  })
})
