import { asn1, write, writeNumber } from '../../../src/crypto/der.ts'
import { hashOf } from '../../../src/crypto/hashes.ts'
import { issuerDigests } from '../../../src/x509/ocsp/certid.ts'
import { readOcspRequest } from '../../../src/x509/ocsp/request.ts'
import { writeOcspResponse, writeResponseData } from '../../../src/x509/ocsp/response.ts'
import { ecdsaWithSha256, type MinimalAuthority } from './authority.ts'
import type { MinimalStore } from './store.ts'

const sha1 = hashOf('sha1')
const expiryMilliseconds = 12 * 3_600_000

/** An OCSP request without a nonce (RFC 6960 section 4.1), hexadecimal. @param serial its magnitude */
export function ocspRequest(issuer: { readonly subject: Buffer; readonly spki: Buffer }, serial: Buffer): string {
  const digests = issuerDigests(sha1, issuer)
  const certId = write(
    asn1.sequence,
    sha1.digestInfo.subarray(2, -2),
    write(asn1.octetString, digests.subarray(0, sha1.bytes)),
    write(asn1.octetString, digests.subarray(sha1.bytes)),
    writeNumber(serial),
  )
  const list = write(asn1.sequence, write(asn1.sequence, certId))
  return write(asn1.sequence, write(asn1.sequence, list)).toString('hex')
}

/** Reads the certificate that is asked about, verifies it, and signs that it is good. */
export async function answerOcsp(authority: MinimalAuthority, request: Buffer, store: MinimalStore): Promise<Buffer> {
  const { certId } = readOcspRequest(request)
  authority.verify(await store.find(certId.serial))
  return signGood(authority, certId.der)
}

/** @param certId of the request, DER */
export function signGood(authority: MinimalAuthority, certId: Buffer): Buffer {
  const now = Date.now()
  const times = { producedAt: now, thisUpdate: now, nextUpdate: now + expiryMilliseconds }
  const data = writeResponseData({
    responder: authority.subject,
    certId,
    status: 'good',
    ...times,
    nonce: undefined,
  })
  return writeOcspResponse(data, ecdsaWithSha256, authority.sign(data))
}
