import 'reflect-metadata'
import * as pkijs from 'pkijs'
import { asn1, readOne } from '../../../src/crypto/der.ts'
import type { Certificate } from '../../../src/x509/certificate.ts'
import { type SignatureAlgorithm, signatureAlgorithmOf, verifySignature } from '../../../src/x509/signature.ts'

/** An OCSP answer as pkijs reads it. */
export interface ReadAnswer {
  readonly status: 'good' | 'revoked' | 'unknown'
  readonly serial: string
  readonly revokedAt: number | undefined
  readonly reason: number | undefined
  /** Whole seconds of milliseconds, as every time here. */
  readonly producedAt: number
  readonly thisUpdate: number
  readonly nextUpdate: number | undefined
  readonly nonce: Buffer | undefined
  readonly algorithm: string | undefined
  /** Whether this certificate's key has signed it, by its name. */
  isFrom(issuer: Certificate): boolean
}

const failures = ['', 'malformedRequest', 'internalError', 'tryLater', '', '', 'unauthorized']
const statuses = ['good', 'revoked', 'unknown'] as const

/** The name of an answer that is not signed; undefined for a signed one. */
export const failureOf = (body: Buffer): string | undefined =>
  body.length === 5 && body.subarray(0, 4).toString('hex') === '30030a01' ? failures[body[4] ?? 0] : undefined

export function readAnswer(body: Buffer): ReadAnswer {
  const failure = failureOf(body)
  if (failure !== undefined) throw new Error(`the answer is ${failure}`)
  const outside = pkijs.OCSPResponse.fromBER(body)
  const basic = pkijs.BasicOCSPResponse.fromBER(outside.responseBytes?.response.valueBlock.valueHexView ?? body)
  const { tbsResponseData: data } = basic
  const [single, ...others] = data.responses
  if (single === undefined || others.length > 0) throw new Error('one answer was expected')
  const { certStatus } = single
  const revoked: { toDate?(): Date; valueBlock: { value?: { valueBlock: { valueDec: number } }[] } }[] =
    certStatus.idBlock.tagNumber === 1 ? certStatus.valueBlock.value : []
  const nonce = data.responseExtensions?.[0]?.extnValue.valueBlock.valueHexView
  const identifier = Buffer.from(basic.signatureAlgorithm.toSchema().toBER())
  const algorithm: SignatureAlgorithm | undefined = signatureAlgorithmOf(identifier)
  return {
    status: statuses[certStatus.idBlock.tagNumber as 0 | 1 | 2],
    serial: Buffer.from(single.certID.serialNumber.valueBlock.valueHexView)
      .toString('hex')
      .replace(/^00(?=.)/, ''),
    revokedAt: revoked[0]?.toDate?.().getTime(),
    reason: revoked[1]?.valueBlock.value?.[0]?.valueBlock.valueDec,
    producedAt: data.producedAt.getTime(),
    thisUpdate: single.thisUpdate.getTime(),
    nextUpdate: single.nextUpdate?.getTime(),
    nonce: nonce && readOne(Buffer.from(nonce), asn1.octetString),
    algorithm: algorithm?.name,
    isFrom: (issuer) =>
      Buffer.from((data.responderID as pkijs.RelativeDistinguishedNames).toSchema().toBER()).equals(issuer.subject) &&
      verifySignature({
        publicKey: issuer.publicKey(),
        algorithm: identifier,
        data: Buffer.from(data.tbsView),
        signature: Buffer.from(basic.signature.valueBlock.valueHexView),
      }),
  }
}
