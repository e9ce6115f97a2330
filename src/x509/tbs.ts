import { type Cursor, within } from '../crypto/cursor.ts'
import { asn1, contextAround, write, writeNumber } from '../crypto/der.ts'
import { type Extension, readExtensionList, writeExtension } from './extension.ts'
import { Malformed } from './malformed.ts'
import { mostSerialBytes } from './serial.ts'
import { readTime, writeTime } from './time.ts'

/** The bytes that an issuer signs: TBSCertificate (RFC 5280 section 4.1.2). */
export interface Tbs {
  /** Magnitude without leading zeros; zero is one byte. */
  readonly serial: Buffer
  /** AlgorithmIdentifier of the signature, DER. */
  readonly algorithm: Buffer
  /** Name, DER. */
  readonly issuer: Buffer
  /** Milliseconds since 1970, as are all times here. */
  readonly notBefore: number
  readonly notAfter: number
  /** Name, DER. */
  readonly subject: Buffer
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer
  readonly extensions: readonly Extension[]
}

const versionTag = contextAround(0)
const extensionsTag = contextAround(3)
const version3 = write(versionTag, write(asn1.integer, Buffer.from([2])))

/** Always X.509 v3. Prepare the extensions that many certificates share (prepareExtension). */
export const writeTbs = (tbs: Tbs): Buffer =>
  write(
    asn1.sequence,
    version3,
    writeNumber(tbs.serial),
    tbs.algorithm,
    tbs.issuer,
    write(asn1.sequence, writeTime(tbs.notBefore), writeTime(tbs.notAfter)),
    tbs.subject,
    tbs.spki,
    ...(tbs.extensions.length === 0
      ? []
      : [write(extensionsTag, write(asn1.sequence, ...tbs.extensions.map(writeExtension)))]),
  )

const noUnusedBits = Buffer.alloc(1)

/** @param tbs exactly the signed bytes @param algorithm the AlgorithmIdentifier inside them, DER */
export const writeCertificate = (tbs: Buffer, algorithm: Buffer, signature: Uint8Array): Buffer =>
  write(asn1.sequence, tbs, algorithm, write(asn1.bitString, noUnusedBits, signature))

/** X.509 v1 and v3. @throws NotDer, Malformed */
export const readTbs = (der: Buffer): Tbs =>
  within(der, asn1.sequence, (tbs) => {
    const version = tbs.tag === versionTag ? readVersion(tbs.enter(versionTag)) : 1
    const serial = readSerial(tbs)
    const algorithm = tbs.element(asn1.sequence)
    const issuer = tbs.element(asn1.sequence)
    const validity = tbs.enter(asn1.sequence)
    const [notBefore, notAfter] = [readTime(validity), readTime(validity)]
    validity.end()
    const subject = tbs.element(asn1.sequence)
    const spki = tbs.element(asn1.sequence)
    const extensions = version === 3 && tbs.more ? readExtensionList(tbs.enter(extensionsTag)) : []
    return { serial, algorithm, issuer, notBefore, notAfter, subject, spki, extensions }
  })

function readVersion(version: Cursor): 3 {
  const number = version.count()
  version.end()
  if (number !== 2) throw new Malformed('only X.509 v1 and v3 are supported')
  return 3
}

/** @throws Malformed */
function readSerial(tbs: Cursor): Buffer {
  const integer = tbs.integer()
  if ((integer[0] ?? 0) > 0x7f) throw new Malformed('the serial number is negative')
  const magnitude = integer.length > 1 && integer[0] === 0 ? integer.subarray(1) : integer
  if (magnitude.length > mostSerialBytes)
    throw new Malformed(`the serial number has more than ${mostSerialBytes} bytes`)
  return magnitude
}
