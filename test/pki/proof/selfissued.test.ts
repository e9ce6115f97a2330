import { generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { asn1, write, writeNumber } from '../../../src/crypto/der.ts'
import { writeOid } from '../../../src/crypto/oid.ts'
import { writePem } from '../../../src/crypto/pem.ts'
import type { Extension } from '../../../src/x509/extension.ts'
import { writeBasicConstraints } from '../../../src/x509/extensions/basicconstraints.ts'
import { writeKeyUsage } from '../../../src/x509/extensions/keyusage.ts'
import { writeCertificate, writeTbs } from '../../../src/x509/tbs.ts'
import { useSharedNode } from '../../api/node.ts'
import { certificateOf, createAuthority, dataOf, errorsOf, type TestAuthority, warningsOf } from '../api/authority.ts'
import { commonName, ecPair, nameOf } from './forge.ts'

/** CA certificates from outside that are not what they seem: imported, and signed again. */

const node = useSharedNode()
const ecdsa = write(asn1.sequence, writeOid('1.2.840.10045.4.3.2'))
const ca = writeBasicConstraints({ ca: true })
const usual = [ca, writeKeyUsage(['CertSign', 'CRLSign'])]
const day = 86_400_000

interface Forgery {
  readonly spki?: Buffer
  readonly extensions?: readonly Extension[]
  readonly subject?: Buffer
  readonly serial?: Buffer
  readonly notAfter?: number
}

function forgedCa(forgery: Forgery = {}): string {
  const { subject = commonName('Forged'), extensions = usual, serial = Buffer.from([7]) } = forgery
  const tbs = writeTbs({
    ...{ serial, subject, extensions, algorithm: ecdsa, issuer: subject },
    notBefore: Date.now() - day,
    notAfter: forgery.notAfter ?? Date.now() + day,
    spki: forgery.spki ?? ecPair.publicKey.export({ format: 'der', type: 'spki' }),
  })
  return `${writePem('CERTIFICATE', writeCertificate(tbs, ecdsa, sign('sha256', tbs, ecPair.privateKey)))}\n`
}

const point = ecPair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-65)
const broken = write(
  asn1.sequence,
  write(asn1.sequence, writeOid('1.2.840.10045.2.1'), writeOid('1.2.840.10045.3.1.7')),
  write(asn1.bitString, Buffer.alloc(1), point.subarray(0, 64), Buffer.from([(point[64] ?? 0) ^ 1])),
)
const rsa512 = generateKeyPairSync('rsa', { modulusLength: 512 }).publicKey.export({ format: 'der', type: 'spki' })
const unknown = (value: Buffer): Extension => ({ oid: '1.3.6.1.4.1.99999.1', critical: true, value })

const forgeries: Readonly<Record<string, Forgery>> = {
  'a point that is not on its curve': { spki: broken },
  'an Ed25519 point of small order': {
    spki: write(
      asn1.sequence,
      write(asn1.sequence, writeOid('1.3.101.112')),
      write(asn1.bitString, Buffer.alloc(2), Buffer.alloc(31)),
    ),
  },
  'RSA of 512 bits': { spki: rsa512 },
  'no key usage': { extensions: [ca] },
  'no keyCertSign': { extensions: [ca, writeKeyUsage(['CRLSign'])] },
  'a path length and no keyCertSign': {
    extensions: [writeBasicConstraints({ ca: true, pathLength: 1 }), writeKeyUsage(['CRLSign'])],
  },
  'uncritical basic constraints': { extensions: [{ ...ca, critical: false }, writeKeyUsage(['CertSign'])] },
  'an empty subject': { subject: nameOf() },
  'a serial number of zero': { serial: Buffer.from([0]) },
  'a life that has ended': { notAfter: Date.now() - day / 2 },
  'a life that ends before it begins': { notAfter: Date.now() - 2 * day },
  'an unknown critical extension': { extensions: [...usual, unknown(writeNumber(Buffer.from([7])))] },
  'an OID of 512 characters': {
    extensions: [...usual, { ...unknown(Buffer.alloc(2)), oid: `2.47${'.127'.repeat(127)}` }],
  },
}

const furnished = async (): Promise<TestAuthority> => {
  const pki = await createAuthority(node)
  await pki.root({ issuer_name: 'root' })
  await pki.role('r')
  return pki
}

describe.each(Object.entries(forgeries))('a certificate with %s', (_, forgery) => {
  test('is signed again as a valid one, or refused', async () => {
    const pki = await furnished()
    const reply = await pki.post('root/sign-self-issued', { certificate: forgedCa(forgery) })
    expect([reply.status, reply.text]).toEqual([reply.status === 200 ? 200 : 400, expect.any(String)])
    if (reply.status !== 200) return expect(errorsOf(reply)[0]).toMatch(/\w{3}/)
    const root = certificateOf(dataOf(await pki.get('cert/ca')))
    expect(certificateOf(dataOf(reply)).verify(root.publicKey)).toBe(true)
    expect(certificateOf(dataOf(reply)).issuer).toBe(root.subject)
    return undefined
  })

  test('is imported or refused, and its use is never a server fault', async () => {
    const pki = await furnished()
    const reply = await pki.post('issuers/import/cert', { pem_bundle: forgedCa(forgery) })
    expect([reply.status, reply.text]).toEqual([reply.status === 200 ? 200 : 400, expect.any(String)])
    if (reply.status !== 200) return
    const [id] = dataOf(reply).imported_issuers as string[]
    const replies = [
      await pki.get(`issuer/${id}`),
      await pki.get(`issuer/${id}/json`),
      await pki.patch(`issuer/${id}`, { revocation_signature_algorithm: 'ECDSAWithSHA256' }),
      await pki.patch(`issuer/${id}`, { manual_chain: [id] }),
      await pki.patch(`issuer/${id}`, { manual_chain: [id, 'root'] }),
      await pki.post(`issuer/${id}/issue/r`, { common_name: 'a.example' }),
      await pki.post(`issuer/${id}/sign-self-issued`, { certificate: forgedCa() }),
      await pki.post('config/issuers', { default: id }),
      await pki.get('ca_chain'),
    ]
    expect(replies.filter(({ status }) => status >= 500).map(({ text }) => text)).toEqual([])
  })
})

test('faults that relying parties may refuse are signed with a warning', async () => {
  const pki = await createAuthority(node)
  await pki.root({ max_path_length: 0 })
  const reply = await pki.post('root/sign-self-issued', { certificate: forgedCa({ extensions: [ca] }) })
  expect(warningsOf(reply)).toEqual(
    expect.arrayContaining([expect.stringContaining('path length of 0'), expect.stringContaining('(ca_key_usage)')]),
  )
})

test('more than one certificate, a leaf, and a CSR are refused', async () => {
  const pki = await furnished()
  const refusal = async (certificate: string) => errorsOf(await pki.post('root/sign-self-issued', { certificate }))[0]
  expect(await refusal(forgedCa() + forgedCa())).toBe('2 certificates found in PEM file, expected 1')
  expect(await refusal(forgedCa({ extensions: [writeKeyUsage(['CertSign'])] }))).toBe(
    'given certificate is not a CA certificate',
  )
  expect(await refusal('x')).toBe('certificate could not be PEM-decoded')
})
