import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { writePem } from '../../../../crypto/pem.ts'
import { signatureAlgorithmOf } from '../../../../crypto/signaturealgorithm.ts'
import { ApiError, badRequest } from '../../../../errors.ts'
import type { Call, Data } from '../../../../route.ts'
import { type CrlFrame, finishCrl, writeCrlFrame } from '../../../../x509/crl.ts'
import type { Extension } from '../../../../x509/extension.ts'
import { crlNumber, deltaCrlIndicator } from '../../../../x509/extensions/crlnumber.ts'
import { writeAuthorityKeyIdentifier } from '../../../../x509/extensions/keyidentifier.ts'
import type { Authority } from '../../authority/authority.ts'
import { issuerOf } from '../../authority/references.ts'
import type { PkiContext } from '../../context.ts'
import { type AbleIssuer, ableIssuer } from '../../issuing/issuer.ts'
import { authorityKeyOf } from '../../issuing/leaf.ts'
import { crlSignatureName, warnOfWeakKey } from '../../issuing/signature.ts'
import type { ListOrder } from './order.ts'

/** The issuer that is to sign a list on request. @throws ApiError 400 */
export function listSigner(authority: Authority, reference: string): AbleIssuer {
  try {
    issuerOf(authority, reference)
  } catch (error) {
    throw error instanceof ApiError ? badRequest(`failed to resolve issuer issuer_ref: ${error.message}`) : error
  }
  return ableIssuer(authority, reference, 'crl-signing')
}

export interface ListContents {
  /** DER of each. */
  readonly entries: readonly Buffer[]
  /** In addition to those that the order determines. */
  readonly extensions: readonly Extension[]
}

/** The members of what signList returns. */
export const signedListAnswer = data(Type.Object({ crl: Type.String() }))

/**
 * Signs a list that is returned and not stored. The caller chooses its number, independent of the mount's lists.
 * @throws ApiError 400; 503 while the clocks of host and database differ too much to date it
 */
export async function signList(
  { context, warn }: Pick<Call<PkiContext>, 'context' | 'warn'>,
  able: AbleIssuer,
  { number, base, nextUpdateSeconds, format }: ListOrder,
  { entries, extensions }: ListContents,
): Promise<Data> {
  context.database.requireClock()
  const { certificate, row } = able.issuer
  const signer = await context.signers.of(able.key, certificate)
  warnOfWeakKey(signer, warn)
  const name = crlSignatureName(row, signer)
  const body = Buffer.concat(entries)
  const now = context.clock.wall()
  const frame: CrlFrame = {
    issuer: certificate.subject,
    algorithm: signatureAlgorithmOf(name).identifier,
    thisUpdate: now,
    nextUpdate: now + nextUpdateSeconds * 1000,
    extensions: [
      writeAuthorityKeyIdentifier(authorityKeyOf(able)),
      crlNumber(number),
      ...(base === undefined ? [] : [deltaCrlIndicator(base)]),
      ...extensions,
    ],
    entriesBytes: body.length,
  }
  const written = writeCrlFrame(frame)
  const { signature } = await signer.sign(name, Buffer.concat([written.head, body, written.tbsTail]))
  const { head, tail } = finishCrl(frame, written, signature)
  const der = Buffer.concat([head, body, tail])
  return { crl: format === 'der' ? der.toString('base64') : `${writePem('X509 CRL', der)}\n` }
}
