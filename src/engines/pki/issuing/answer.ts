import { Type } from 'typebox'
import { data, strings, titled } from '../../../answers.ts'
import { writePem } from '../../../crypto/pem.ts'
import { badRequest } from '../../../errors.ts'
import type { Data } from '../../../route.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { isSelfSigned } from '../../../x509/chain.ts'
import { withColons } from '../../../x509/serial.ts'
import { pemOf } from '../authority/pem.ts'
import { describePrivateKey, optionalPrivateKey, type PrivateKey } from '../keys/privatekey.ts'

export type Format = 'pem' | 'der' | 'pem_bundle'
const formats: readonly string[] = ['pem', 'der', 'pem_bundle']
const isFormat = (format: string): format is Format => formats.includes(format)

/** @param format pem when absent @throws ApiError 400 */
export function readFormat(format = 'pem'): Format {
  if (isFormat(format)) return format
  throw badRequest('the "format" path parameter must be "pem", "der", or "pem_bundle"')
}

/** A certificate that was just signed. */
export interface SignedCertificate {
  readonly der: Buffer
  /** Magnitude. */
  readonly serial: Buffer
  /** Milliseconds since the Unix epoch. */
  readonly notBefore: number
  readonly notAfter: number
}

export interface Issued {
  readonly certificate: SignedCertificate
  /** The issuer first. */
  readonly chain: readonly Certificate[]
  readonly privateKey?: PrivateKey | undefined
}

const roots = new WeakMap<Certificate, boolean>()

/** Whether a certificate is signed by its own key: relying parties have it already. */
export function isRoot(certificate: Certificate): boolean {
  const known = roots.get(certificate) ?? isSelfSigned(certificate)
  roots.set(certificate, known)
  return known
}

/** The members of describeIssued that every certificate has. */
export const issuedAnswer = {
  certificate: Type.String(),
  issuing_ca: Type.String(),
  ca_chain: Type.Optional(strings),
  serial_number: Type.String(),
  expiration: Type.Integer(),
}

/** The certificate of a leaf, with its private key if it was made here. */
export const leafAnswer = data(
  titled('Certificate', { ...issuedAnswer, not_before: Type.Integer(), ...optionalPrivateKey }),
)

/** The answer of issuing and signing. @param listed the part of the chain to show as ca_chain */
export function describeIssued(issued: Issued, format: Format, listed: readonly Certificate[]): Data {
  const { certificate, chain, privateKey } = issued
  const [issuer] = chain
  const text = (ca: Certificate): string => (format === 'der' ? ca.der.toString('base64') : pemOf(ca))
  const own = format === 'der' ? certificate.der.toString('base64') : writePem('CERTIFICATE', certificate.der)
  return {
    certificate: format === 'pem_bundle' ? bundleOf(issued, own) : own,
    issuing_ca: issuer === undefined ? own : text(issuer),
    ...(listed.length > 0 ? { ca_chain: listed.map(text) } : {}),
    serial_number: withColons(certificate.serial),
    expiration: Math.floor(certificate.notAfter / 1000),
    not_before: Math.floor(certificate.notBefore / 1000),
    ...(privateKey ? describePrivateKey(privateKey, format === 'der') : {}),
  }
}

/** Private key, certificate, and the chain without its root. */
const bundleOf = ({ chain, privateKey }: Issued, certificate: string): string =>
  [...(privateKey ? [privateKey.pem] : []), certificate, ...chain.filter((one) => !isRoot(one)).map(pemOf)].join('\n')
