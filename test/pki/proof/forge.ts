import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { asn1, contextAround, write, writeNumber } from '../../../src/crypto/der.ts'
import { writeOid } from '../../../src/crypto/oid.ts'
import { writePem } from '../../../src/crypto/pem.ts'

/** Certification requests that no tool writes: put together from bytes, but signed by their own keys. */

/** The differences from a harmless request on P-256 for `a.example`. */
export interface Forgery {
  /** Name, DER. */
  readonly subject?: Buffer
  readonly key?: KeyPair
  /** SubjectPublicKeyInfo in place of the key's own. */
  readonly spki?: Buffer
  /** Extensions to ask for, DER each. */
  readonly extensions?: readonly Buffer[]
  /** Attributes in place of one extension request, DER each. */
  readonly attributes?: readonly Buffer[]
  readonly version?: number
  /** Of the signature; SHA-256 with ECDSA when absent. */
  readonly algorithm?: Buffer
  readonly hash?: string | null
}

export interface KeyPair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export const ecPair: KeyPair = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const ecdsaWithSha256 = write(asn1.sequence, writeOid('1.2.840.10045.4.3.2'))
export const rsaWithSha256 = write(asn1.sequence, writeOid('1.2.840.113549.1.1.11'), write(asn1.null))

export const text = (value: string | Buffer, tag: number = asn1.utf8String): Buffer => write(tag, Buffer.from(value))

/** An RDN of one attribute. */
export const rdn = (type: string, value: Buffer): Buffer => write(asn1.set, write(asn1.sequence, writeOid(type), value))

export const nameOf = (...rdns: readonly Buffer[]): Buffer => write(asn1.sequence, ...rdns)
export const commonName = (value: string | Buffer, tag?: number): Buffer => nameOf(rdn('2.5.4.3', text(value, tag)))

/** An Extension. @param value the contents of extnValue */
export const extension = (oid: string, value: Buffer, critical = false): Buffer =>
  write(
    asn1.sequence,
    writeOid(oid),
    critical ? write(asn1.boolean, Buffer.from([0xff])) : Buffer.alloc(0),
    write(asn1.octetString, value),
  )

export const altNames = (...names: readonly Buffer[]): Buffer => extension('2.5.29.17', write(asn1.sequence, ...names))
export const dnsName = (value: string): Buffer => write(0x82, Buffer.from(value))

/** An attribute of any number of values. */
export const attribute = (type: string, ...values: readonly Buffer[]): Buffer =>
  write(asn1.sequence, writeOid(type), write(asn1.set, ...values))

export const extensionRequest = (...extensions: readonly Buffer[]): Buffer =>
  attribute('1.2.840.113549.1.9.14', write(asn1.sequence, ...extensions))

/** The request as DER, signed by its key. */
export function forgeDer(forgery: Forgery = {}): Buffer {
  const { key = ecPair, extensions = [], algorithm = ecdsaWithSha256, hash = 'sha256', version = 0 } = forgery
  const attributes = forgery.attributes ?? (extensions.length === 0 ? [] : [extensionRequest(...extensions)])
  const info = write(
    asn1.sequence,
    writeNumber(Buffer.from([version])),
    forgery.subject ?? commonName('a.example'),
    forgery.spki ?? key.publicKey.export({ format: 'der', type: 'spki' }),
    write(contextAround(0), ...attributes),
  )
  const signature = sign(hash, info, key.privateKey)
  return write(asn1.sequence, info, algorithm, write(asn1.bitString, Buffer.alloc(1), signature))
}

export const pemOf = (der: Buffer): string => writePem('CERTIFICATE REQUEST', der)

export const forge = (forgery?: Forgery): string => pemOf(forgeDer(forgery))
