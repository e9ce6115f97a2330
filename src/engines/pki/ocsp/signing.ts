import { hash } from 'node:crypto'
import { after } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import type { SignatureName } from '../../../crypto/signaturealgorithm.ts'
import type { CertificationSigner } from '../../../keys/use/certification.ts'
import type { MaybePromise } from '../../../route.ts'
import { type CertStatus, writeOcspResponse, writeResponseData } from '../../../x509/ocsp/response.ts'
import type { Issuer } from '../authority/authority.ts'
import type { IssuerRow } from '../authority/tables.ts'
import { crlSignatureName } from '../issuing/signature.ts'
import type { Signers } from '../keys/signers.ts'
import type { AskedAuthority } from './asked.ts'
import type { SignedAnswer } from './prepared.ts'

/** An answer to sign about a certificate. */
export interface AnswerOrder {
  readonly asked: AskedAuthority
  /** The signer. */
  readonly issuer: Issuer
  /** From the request, DER. */
  readonly certId: Buffer
  readonly status: CertStatus
  /** When the status was known to be so. */
  readonly asOf: number
  readonly nonce: Buffer | undefined
}

/**
 * Signs an answer in the token.
 * @throws ApiError 503 while the token is away; FaultySignature
 */
export function signAnswer(
  { asked, issuer, certId, status, asOf, nonce }: AnswerOrder,
  { signers, clock }: { readonly signers: Pick<Signers, 'of'>; readonly clock: Clock },
): MaybePromise<SignedAnswer> {
  const key = asked.authority.keyOf(issuer)
  if (key === undefined) throw new Error('an issuer without a key cannot answer requests')
  const { expiryMilliseconds: expiry } = asked
  const nextUpdate = expiry > 0 ? asOf + expiry : undefined
  const times = { producedAt: clock.wall(), thisUpdate: asOf, nextUpdate }
  const data = writeResponseData({ responder: issuer.certificate.subject, certId, status, ...times, nonce })
  return after(signers.of(key, issuer.certificate), (signer) =>
    after(signer.sign(signatureNameOf(issuer.row, signer), data), ({ algorithm, signature }): SignedAnswer => {
      const body = writeOcspResponse(data, algorithm, signature)
      const tag = hash('sha256', body).slice(0, 32)
      return { body, thisUpdate: asOf, nextUpdate, refreshAt: asOf + expiry / 2, tag }
    }),
  )
}

/**
 * As for lists, but with PSS only for keys without another padding: Go's OCSP clients cannot read PSS.
 * @throws ApiError 400
 */
function signatureNameOf(row: IssuerRow, signer: CertificationSigner): SignatureName {
  const name = crlSignatureName(row, signer)
  const withoutPss = name.replace(/PSS$/, '')
  return signer.algorithms.find((one) => one === withoutPss) ?? name
}
