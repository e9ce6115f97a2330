import { createPublicKey, hash, randomBytes, verify } from 'node:crypto'
import { within } from '../../../src/crypto/cursor.ts'
import { asn1 } from '../../../src/crypto/der.ts'
import { toDer } from '../../../src/crypto/signature.ts'
import { type Extension, prepareExtension } from '../../../src/x509/extension.ts'
import { writeAuthorityInformationAccess } from '../../../src/x509/extensions/authorityinformationaccess.ts'
import { writeCrlDistributionPoints } from '../../../src/x509/extensions/crldistributionpoints.ts'
import { extendedKeyUsages, writeExtendedKeyUsage } from '../../../src/x509/extensions/extendedkeyusage.ts'
import { writeAuthorityKeyIdentifier, writeSubjectKeyIdentifier } from '../../../src/x509/extensions/keyidentifier.ts'
import { writeKeyUsage } from '../../../src/x509/extensions/keyusage.ts'
import { writeSubjectAltName } from '../../../src/x509/extensions/subjectaltname.ts'
import { attributeTypes, writeName } from '../../../src/x509/name.ts'
import { writeCertificate, writeTbs } from '../../../src/x509/tbs.ts'
import type { RawToken } from '../token.ts'
import { ecSpki } from './leafpair.ts'

/** A certificate that a minimal authority has signed. */
export interface Certified {
  readonly serial: Buffer
  readonly der: Buffer
  readonly notAfter: number
  /** Text of the answer's fields that are about the certificate. */
  readonly fields: Readonly<Record<string, unknown>>
}

export interface MinimalAuthority {
  /** Signs a certificate for a host, and verifies the signature. */
  certify(host: string, spki: Buffer): Certified
  /** Signs bytes, and verifies the signature: ecdsa-with-SHA256, DER. */
  sign(bytes: Buffer): Buffer
  /** @throws Error unless it has signed the certificate */
  verify(certificate: Buffer): void
  /** Its name and key, DER. */
  readonly subject: Buffer
  readonly spki: Buffer
}

/** URLs of an authority that publishes its certificates and lists. */
export const urls = {
  issuing_certificates: ['http://pki.example.com/v1/pki/ca'],
  crl_distribution_points: ['http://pki.example.com/v1/pki/crl'],
  ocsp_servers: ['http://pki.example.com/v1/pki/ocsp'],
}

const ttlMilliseconds = 30 * 86_400_000
/** AlgorithmIdentifier. */
export const ecdsaWithSha256 = Buffer.from('300a06082a8648ce3d040302', 'hex')
const nameOf = (commonName: string): Buffer => writeName([[{ type: attributeTypes.commonName, value: commonName }]])
const keyIdentifierOf = (spki: Buffer): Buffer => hash('sha1', spki.subarray(-65), 'buffer')

/** The text of one PEM block. */
export const pem = (label: string, der: Buffer): string =>
  `-----BEGIN ${label}-----\n${der.toString('base64').replace(/.{64}(?!$)/g, '$&\n')}\n-----END ${label}-----`

/** The extensions that all certificates of an authority share. */
const commonExtensions = (authorityKey: Buffer): readonly Extension[] =>
  [
    writeKeyUsage(['DigitalSignature', 'KeyEncipherment', 'KeyAgreement']),
    writeExtendedKeyUsage([extendedKeyUsages.ServerAuth, extendedKeyUsages.ClientAuth]),
    writeAuthorityKeyIdentifier(authorityKey),
    writeAuthorityInformationAccess({ ocsp: urls.ocsp_servers, caIssuers: urls.issuing_certificates }),
    writeCrlDistributionPoints(urls.crl_distribution_points),
  ].map(prepareExtension)

/** An authority without rules, roles or checks of its certificates: its key is the token's pair of ecdsa-p256. */
export function openAuthority(token: RawToken): MinimalAuthority {
  const pair = token.pair('ecdsa-p256')
  const ownSpki = ecSpki(pair.ecPoint)
  const publicKey = createPublicKey({ key: ownSpki, format: 'der', type: 'spki' })
  const issuer = nameOf('Bench Root')
  const common = commonExtensions(keyIdentifierOf(ownSpki))
  const sign = (bytes: Buffer): Buffer => {
    const signature = toDer(pair.sign(bytes))
    if (!verify('sha256', bytes, publicKey, signature)) throw new Error('a faulty signature')
    return signature
  }
  const certify = (host: string, spki: Buffer, chain: readonly string[]): Certified => {
    const serial = randomBytes(20)
    serial[0] = 0x40 | ((serial[0] ?? 0) & 0x3f)
    const now = Date.now()
    const [notBefore, notAfter] = [now - 30_000, now + ttlMilliseconds]
    const extensions = [
      ...common,
      writeSubjectKeyIdentifier(keyIdentifierOf(spki)),
      writeSubjectAltName([{ kind: 'dns', value: host }], false),
    ]
    const subject = nameOf(host)
    const tbs = writeTbs({ serial, algorithm: ecdsaWithSha256, issuer, notBefore, notAfter, subject, spki, extensions })
    const der = writeCertificate(tbs, ecdsaWithSha256, sign(tbs))
    const fields = {
      certificate: pem('CERTIFICATE', der),
      issuing_ca: chain[0],
      ca_chain: chain,
      serial_number: serial.toString('hex').replace(/..(?!$)/g, '$&:'),
      expiration: Math.floor(notAfter / 1000),
      not_before: Math.floor(notBefore / 1000),
    }
    return { serial, der, notAfter, fields }
  }
  const root = [pem('CERTIFICATE', certify('Bench Root', ownSpki, []).der)]
  return {
    certify: (host, spki) => certify(host, spki, root),
    sign,
    verify(certificate) {
      const [tbs, signature] = within(certificate, asn1.sequence, (fields) => {
        const tbs = fields.element(asn1.sequence)
        fields.skip(asn1.sequence)
        return [tbs, fields.bytes()] as const
      })
      if (!verify('sha256', tbs, publicKey, signature)) throw new Error('a certificate of somebody else')
    },
    subject: issuer,
    spki: ownSpki,
  }
}

/** The key of a PKCS#10 request of ecdsa-with-SHA256. @throws Error unless it has signed the request */
export function keyOfRequest(text: string): Buffer {
  const der = Buffer.from(text.replace(/-----[A-Z ]+-----/g, ''), 'base64')
  return within(der, asn1.sequence, (request) => {
    const info = request.element(asn1.sequence)
    request.skip(asn1.sequence)
    const signature = request.bytes()
    const inside = within(info, asn1.sequence, (fields) => {
      fields.skip(asn1.integer)
      fields.skip(asn1.sequence)
      const spki = fields.element(asn1.sequence)
      fields.skip()
      return spki
    })
    const key = createPublicKey({ key: inside, format: 'der', type: 'spki' })
    if (!verify('sha256', info, key, signature)) throw new Error('the request is not signed by its key')
    return inside
  })
}
