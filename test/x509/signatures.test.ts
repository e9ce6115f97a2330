import { constants, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { asn1, contextAround, write } from '../../src/crypto/der.ts'
import { writeOid } from '../../src/crypto/oid.ts'
import { signatureAlgorithmOf, signatureAlgorithms, verifySignature } from '../../src/x509/signature.ts'
import { ecPair, type Pair } from './authority.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pairs: Readonly<Record<string, Pair>> = { rsa, ec: ecPair('P-384'), ed25519: generateKeyPairSync('ed25519') }
const rows = [...signatureAlgorithms.values()]
const data = Buffer.from('what is signed')

const pssOptions = (saltLength: number) => ({ padding: constants.RSA_PKCS1_PSS_PADDING, saltLength })

describe('the table', () => {
  test.each(rows.map((row) => [row.name, row] as const))(
    '%s: what node:crypto signs verifies, by no other row',
    (_, row) => {
      const { privateKey, publicKey } = pairs[row.family] ?? rsa
      const options = row.saltBytes === undefined ? privateKey : { key: privateKey, ...pssOptions(row.saltBytes) }
      const signature = sign(row.hash?.node, data, options)
      const accepted = rows.filter(({ identifier }) =>
        verifySignature({ publicKey, algorithm: identifier, data, signature }),
      )
      expect(accepted).toEqual([row])
      expect(verifySignature({ publicKey, algorithm: row.identifier, data: Buffer.from('other'), signature })).toBe(
        false,
      )
      expect(signatureAlgorithmOf(row.identifier)).toBe(row)
      expect(row.weak).toBe(row.name.includes('SHA1'))
    },
  )

  test.each([
    ['SHA256WithRSA', '300d06092a864886f70d01010b0500'],
    ['ECDSAWithSHA384', '300a06082a8648ce3d040303'],
    ['Ed25519', '300506032b6570'],
    [
      'SHA256WithRSAPSS',
      '304106092a864886f70d01010a3034a00f300d06096086480165030402010500a11c301a06092a864886f70d010108300d06096086480165030402010500a203020120',
    ],
  ])('%s has the identifier of its RFC', (name, der) => {
    expect(signatureAlgorithms.get(name)?.identifier.toString('hex')).toBe(der)
  })
})

describe('identifiers of others', () => {
  const pss = (...fields: readonly Buffer[]) =>
    write(asn1.sequence, writeOid('1.2.840.113549.1.1.10'), write(asn1.sequence, ...fields))
  const hash = (oid: string, parameters = write(asn1.null)) => write(asn1.sequence, writeOid(oid), parameters)
  const sha256 = '2.16.840.1.101.3.4.2.1'
  const mask = (inner: Buffer, oid = '1.2.840.113549.1.1.8') =>
    write(contextAround(1), write(asn1.sequence, writeOid(oid), inner))
  const salt = (bytes: number) => write(contextAround(2), write(asn1.integer, Buffer.from([bytes])))
  const hashField = (inner: Buffer) => write(contextAround(0), inner)

  test('PKCS#1 without NULL is the same algorithm (RFC 4055)', () => {
    expect(signatureAlgorithmOf(Buffer.from('300b06092a864886f70d01010b', 'hex'))?.name).toBe('SHA256WithRSA')
  })

  test('PSS without parameters is SHA-1, and weak', () => {
    expect(signatureAlgorithmOf(pss())).toMatchObject({ name: 'SHA1WithRSAPSS', saltBytes: 20, weak: true })
  })

  test('PSS with a salt of another length is verified with that length alone', () => {
    const algorithm = pss(hashField(hash(sha256)), mask(hash(sha256)), salt(10))
    expect(signatureAlgorithmOf(algorithm)).toMatchObject({ name: 'SHA256WithRSAPSS', saltBytes: 10, weak: false })
    const signed = (bytes: number) => sign('sha256', data, { key: rsa.privateKey, ...pssOptions(bytes) })
    const verified = [10, 32, 0].map((bytes) =>
      verifySignature({ publicKey: rsa.publicKey, algorithm, data, signature: signed(bytes) }),
    )
    expect(verified).toEqual([true, false, false])
  })

  test('PSS whose hashes leave their NULL out is the same algorithm', () => {
    const bare = hash(sha256, Buffer.alloc(0))
    expect(signatureAlgorithmOf(pss(hashField(bare), mask(bare), salt(32)))?.name).toBe('SHA256WithRSAPSS')
  })

  test.each([
    ['another hash in the mask', pss(hashField(hash(sha256)), mask(hash('2.16.840.1.101.3.4.2.2')), salt(32))],
    ['the default mask beside another hash', pss(hashField(hash(sha256)), salt(32))],
    ['another mask', pss(hashField(hash(sha256)), mask(hash(sha256), '1.2.3'), salt(32))],
    ['another trailer', pss(write(contextAround(3), write(asn1.integer, Buffer.from([2]))))],
    ['a negative salt', pss(hashField(hash(sha256)), mask(hash(sha256)), salt(0xff))],
    ['parameters in another order', pss(salt(32), hashField(hash(sha256)), mask(hash(sha256)))],
    ['one field too many', pss(write(contextAround(4)))],
    ['a SHA-3 hash', pss(hashField(hash('2.16.840.1.101.3.4.2.8')), mask(hash('2.16.840.1.101.3.4.2.8')), salt(32))],
    ['ECDSA with NULL', write(asn1.sequence, writeOid('1.2.840.10045.4.3.2'), write(asn1.null))],
    ['Ed25519 with NULL', write(asn1.sequence, writeOid('1.3.101.112'), write(asn1.null))],
    ['PKCS#1 with other parameters', write(asn1.sequence, writeOid('1.2.840.113549.1.1.11'), write(asn1.sequence))],
    ['MD5', write(asn1.sequence, writeOid('1.2.840.113549.1.1.4'), write(asn1.null))],
    ['no identifier', Buffer.from('0500', 'hex')],
    ['nothing', Buffer.alloc(0)],
  ])('%s is not an algorithm and verifies nothing', (_, algorithm) => {
    expect(signatureAlgorithmOf(algorithm)).toBeUndefined()
    const signature = sign('sha256', data, rsa.privateKey)
    expect(verifySignature({ publicKey: rsa.publicKey, algorithm, data, signature })).toBe(false)
  })

  test('an RSA-PSS key verifies nothing but PSS', () => {
    const key = generateKeyPairSync('rsa-pss', { modulusLength: 2048 })
    const verified = (name: string) => {
      const { identifier = Buffer.alloc(0), saltBytes } = signatureAlgorithms.get(name) ?? {}
      const signature = sign('sha256', data, { key: key.privateKey, ...pssOptions(saltBytes ?? 32) })
      return verifySignature({ publicKey: key.publicKey, algorithm: identifier, data, signature })
    }
    expect(['SHA256WithRSAPSS', 'SHA256WithRSA'].map(verified)).toEqual([true, false])
  })
})
