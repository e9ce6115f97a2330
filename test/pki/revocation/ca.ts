import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { asn1, write } from '../../../src/crypto/der.ts'
import { writeOid } from '../../../src/crypto/oid.ts'
import { writePem } from '../../../src/crypto/pem.ts'
import { type Certificate, readCertificate } from '../../../src/x509/certificate.ts'
import { writeCertificate, writeTbs } from '../../../src/x509/tbs.ts'
import { commonName } from '../proof/forge.ts'

/** Authorities of the test's own, which sign any certificate, however odd. */

export interface Pair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export interface TestCa {
  readonly certificate: Certificate
  readonly pair: Pair
  /** Signs a certificate that lasts an hour unless `notAfter` is given. */
  sign(wanted?: Wanted): Certificate
}

export interface Wanted {
  /** In hexadecimal. */
  readonly serial?: string
  readonly notAfter?: number
  readonly subject?: Buffer
  readonly publicKey?: KeyObject
  readonly ca?: boolean
}

const ecdsaWithSha256 = write(asn1.sequence, writeOid('1.2.840.10045.4.3.2'))
const isCa = { oid: '2.5.29.19', critical: true, value: write(asn1.sequence, write(asn1.boolean, Buffer.from([0xff]))) }
const hour = 3_600_000

export const ecPair = (namedCurve = 'P-256'): Pair => generateKeyPairSync('ec', { namedCurve })

/** A root, or with `signer` an intermediate. */
export function createCa(name: string, signer?: TestCa, pair: Pair = ecPair()): TestCa {
  const subject = commonName(name)
  const signing = (issuer: Buffer, key: KeyObject, { serial, notAfter, ca, ...wanted }: Wanted): Certificate => {
    const now = Math.floor(Date.now() / 1000) * 1000
    const tbs = writeTbs({
      serial: Buffer.from(serial ?? randomBytes(16).toString('hex').replace(/^./, '1'), 'hex'),
      algorithm: ecdsaWithSha256,
      issuer,
      notBefore: now - hour,
      notAfter: notAfter ?? now + hour,
      subject: wanted.subject ?? commonName('leaf'),
      spki: (wanted.publicKey ?? leafPair.publicKey).export({ format: 'der', type: 'spki' }),
      extensions: ca ? [isCa] : [],
    })
    return readCertificate(writeCertificate(tbs, ecdsaWithSha256, sign('sha256', tbs, key)))
  }
  const own = { subject, publicKey: pair.publicKey, ca: true, notAfter: Date.now() + 10_000 * hour }
  const certificate = signer ? signer.sign(own) : signing(subject, pair.privateKey, own)
  return { certificate, pair, sign: (wanted = {}) => signing(subject, pair.privateKey, wanted) }
}

export const leafPair = ecPair()

export const pemOf = ({ der }: Certificate): string => writePem('CERTIFICATE', der)
