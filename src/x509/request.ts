import type { KeyObject } from 'node:crypto'
import { type Cursor, within } from '../crypto/cursor.ts'
import { asn1, contextAround, NotDer, write } from '../crypto/der.ts'
import { writeOid } from '../crypto/oid.ts'
import { type Extension, readExtensions, writeExtension } from './extension.ts'
import { Malformed, reading } from './malformed.ts'
import { emptyName, readName } from './name.ts'
import { importSubjectKey, readSubjectKey, type SubjectKey } from './publickey.ts'
import { verifySignature } from './signature.ts'

/** Certification requests (PKCS#10, RFC 2986). */

const attributesTag = contextAround(0)
/** RFC 2985 section 5.4.2, and the OID of Microsoft's tools. */
const extensionRequests: readonly string[] = ['1.2.840.113549.1.9.14', '1.3.6.1.4.1.311.2.1.14']
const [extensionRequest = ''] = extensionRequests
const version1 = write(asn1.integer, Buffer.alloc(1))
const noUnusedBits = Buffer.alloc(1)
const mostAttributes = 100

export interface Attribute {
  /** Dotted OID. */
  readonly type: string
  /** The DER of each value. */
  readonly values: readonly Buffer[]
}

/** A parsed request. Its buffers are views of `der`. Call verifyRequest before trusting it. */
export interface CertificationRequest {
  readonly der: Buffer
  /** CertificationRequestInfo, DER: the bytes that are signed. */
  readonly info: Buffer
  /** Name, DER. */
  readonly subject: Buffer
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer
  readonly subjectKey: SubjectKey
  /** @throws Malformed for numbers that do not form a key */
  publicKey(): KeyObject
  readonly attributes: readonly Attribute[]
  /** The requested extensions. */
  readonly extensions: readonly Extension[]
  /** AlgorithmIdentifier of the signature, DER. */
  readonly algorithm: Buffer
  readonly signature: Buffer
}

/** Reads strictly. @throws Malformed */
export const readRequest = (der: Buffer): CertificationRequest =>
  reading('certification request', () =>
    within(der, asn1.sequence, (outside) => {
      const info = outside.element(asn1.sequence)
      const algorithm = outside.element(asn1.sequence)
      const signature = outside.bytes()
      const { subject, spki, attributes } = within(info, asn1.sequence, readInfo)
      readName(subject)
      const subjectKey = readSubjectKey(spki)
      const extensions = requestedExtensions(attributes)
      let key: KeyObject | undefined
      const publicKey = (): KeyObject => {
        key ??= importSubjectKey(spki)
        return key
      }
      return { der, info, subject, spki, subjectKey, publicKey, attributes, extensions, algorithm, signature }
    }),
  )

/** Attributes may be absent: many old tools leave them out. */
function readInfo(info: Cursor) {
  if (info.count() !== 0) throw new Malformed('its version is unknown')
  const subject = info.element(asn1.sequence)
  const spki = info.element(asn1.sequence)
  const attributes = info.more ? readAttributes(info.enter(attributesTag)) : []
  return { subject, spki, attributes }
}

function readAttributes(list: Cursor): readonly Attribute[] {
  const attributes: Attribute[] = []
  while (list.more) {
    const attribute = list.enter(asn1.sequence)
    const type = attribute.oid()
    const set = attribute.enter(asn1.set)
    attribute.end()
    const values: Buffer[] = []
    while (set.more) values.push(set.element())
    if (attributes.some((other) => other.type === type)) throw new Malformed(`attribute ${type} comes twice`)
    if (attributes.length === mostAttributes) throw new Malformed(`more than ${mostAttributes} attributes`)
    attributes.push({ type, values })
  }
  return attributes
}

function requestedExtensions(attributes: readonly Attribute[]): readonly Extension[] {
  const requests = attributes.filter(({ type }) => extensionRequests.includes(type))
  const [request, ...more] = requests
  if (request === undefined) return []
  if (more.length > 0) throw new Malformed('it asks for extensions in two attributes')
  const [value, ...others] = request.values
  if (value === undefined || others.length > 0) throw new Malformed('an extension request has exactly one value')
  return reading('extension request', () => within(value, asn1.sequence, readExtensions))
}

/** Whether the request is signed by its own key. @throws Malformed for numbers that do not form a key */
export const verifyRequest = (request: CertificationRequest): boolean =>
  verifySignature({
    publicKey: request.publicKey(),
    algorithm: request.algorithm,
    data: request.info,
    signature: request.signature,
  })

/** The contents of a request besides its key: subject and attributes, as DER. */
export interface Template {
  readonly subject: Buffer
  readonly attributes: Buffer
}

export const emptyTemplate: Template = { subject: emptyName, attributes: write(attributesTag) }

/** A subject and the requested extensions. @param subject Name, DER */
export function makeTemplate(subject: Buffer, extensions: readonly Extension[]): Template {
  if (extensions.length === 0) return { subject, attributes: emptyTemplate.attributes }
  const value = write(asn1.sequence, ...extensions.map(writeExtension))
  const attribute = write(asn1.sequence, writeOid(extensionRequest), write(asn1.set, value))
  return { subject, attributes: write(attributesTag, attribute) }
}

/** The subject and attributes of a given request. Its signature does not matter: a new one is made. @throws NotDer */
export const readTemplate = (der: Buffer): Template =>
  within(der, asn1.sequence, (outside) => {
    const info = outside.enter(asn1.sequence)
    outside.skip(asn1.sequence)
    outside.skip(asn1.bitString)
    if (info.count() !== 0) throw new NotDer('unsupported version')
    const subject = info.element(asn1.sequence)
    info.skip(asn1.sequence)
    const attributes = info.more ? info.element(attributesTag) : emptyTemplate.attributes
    info.end()
    checkElements(subject, asn1.sequence)
    checkElements(attributes, attributesTag)
    return { subject, attributes }
  })

const checkElements = (der: Buffer, tag: number): void =>
  within(der, tag, (elements) => {
    while (elements.more) elements.skip()
  })

/**
 * @param spki SubjectPublicKeyInfo, DER
 * @param algorithm AlgorithmIdentifier of the signature, DER
 * @param sign makes the signature over exactly the bytes it is given
 * @returns DER
 */
export async function makeRequest(
  { spki, algorithm }: { readonly spki: Buffer; readonly algorithm: Buffer },
  { subject, attributes }: Template,
  sign: (info: Buffer) => Promise<Buffer> | Buffer,
): Promise<Buffer> {
  const info = write(asn1.sequence, version1, subject, spki, attributes)
  return write(asn1.sequence, info, algorithm, write(asn1.bitString, noUnusedBits, await sign(info)))
}
