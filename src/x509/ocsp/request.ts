import { Cursor, within } from '../../crypto/cursor.ts'
import { asn1, contextAround } from '../../crypto/der.ts'
import { readExtensions } from '../extension.ts'
import { readGeneralName } from '../extensions/generalname.ts'
import { Malformed, reading } from '../malformed.ts'
import { type CertId, readCertId } from './certid.ts'

/** An OCSP request (RFC 6960 section 4.1). Its buffers are views of the request. */
export interface OcspRequest {
  /** The first one requested: an answer is about one certificate only. */
  readonly certId: CertId
  /** Repeated in the answer, 1 to 128 bytes (RFC 9654 section 2.1). */
  readonly nonce: Buffer | undefined
}

/**
 * A longer request is refused unread: even with the longest nonce and a requestor's name a request has a few hundred
 * bytes.
 */
export const longestOcspRequest = 2047
export const nonceOid = '1.3.6.1.5.5.7.48.1.2'

const mostNonceBytes = 128
const versionTag = contextAround(0)
const requestorTag = contextAround(1)
const extensionsTag = contextAround(2)

/**
 * Reads strictly: DER. The requestor's name, its signature, further certificates and extensions that are not critical
 * change nothing.
 * @throws Malformed
 */
export const readOcspRequest = (der: Buffer): OcspRequest =>
  reading('OCSP request', () => {
    if (der.length > longestOcspRequest) throw new Malformed(`it has more than ${longestOcspRequest} bytes`)
    return within(der, asn1.sequence, (outside) => {
      const request = readTbs(outside.enter(asn1.sequence))
      if (outside.more) passSignature(outside)
      return request
    })
  })

function readTbs(tbs: Cursor): OcspRequest {
  if (tbs.tag === versionTag) {
    const version = tbs.enter(versionTag)
    if (version.count() !== 0) throw new Malformed('unsupported version')
    version.end()
  }
  if (tbs.tag === requestorTag) {
    const requestor = tbs.enter(requestorTag)
    readGeneralName(requestor)
    requestor.end()
  }
  const certId = readRequests(tbs.enter(asn1.sequence))
  const nonce = tbs.tag === extensionsTag ? readNonce(tbs.enter(extensionsTag)) : undefined
  tbs.end()
  return { certId, nonce }
}

/** Reads all requests; only the first is answered. */
function readRequests(list: Cursor): CertId {
  const first = readRequest(list)
  while (list.more) readRequest(list)
  return first
}

function readRequest(list: Cursor): CertId {
  const request = list.enter(asn1.sequence)
  const certId = readCertId(request)
  if (request.tag === versionTag) readKnown(request.enter(versionTag))
  request.end()
  return certId
}

/** @throws Malformed for a critical extension: its demand would not be met (RFC 6960 section 4.4) */
function readKnown(around: Cursor) {
  const list = around.enter(asn1.sequence)
  around.end()
  const extensions = readExtensions(list)
  const demanding = extensions.find(({ oid, critical }) => critical && oid !== nonceOid)
  if (demanding !== undefined) throw new Malformed(`critical extension ${demanding.oid} is not supported`)
  return extensions
}

function readNonce(around: Cursor): Buffer | undefined {
  const extension = readKnown(around).find(({ oid }) => oid === nonceOid)
  if (extension === undefined) return undefined
  const cursor = new Cursor(extension.value)
  const nonce = cursor.contents(asn1.octetString)
  cursor.end()
  if (nonce.length === 0 || nonce.length > mostNonceBytes) {
    throw new Malformed(`a nonce has 1 to ${mostNonceBytes} bytes`)
  }
  return nonce
}

/** Skips the requestor's signature (RFC 6960 section 4.1.1): every requestor is answered, so it is not verified. */
function passSignature(outside: Cursor): void {
  const around = outside.enter(contextAround(0))
  const signature = around.enter(asn1.sequence)
  around.end()
  signature.skip(asn1.sequence)
  signature.bytes()
  if (signature.more) signature.skip(contextAround(0))
  signature.end()
}
