import { wholeSeconds } from '../../../clock/moment.ts'
import { signatureAlgorithmOf } from '../../../crypto/signaturealgorithm.ts'
import { badRequest } from '../../../errors.ts'
import type { CertificationSigner } from '../../../keys/use/certification.ts'
import type { Database } from '../../../store/database.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { keyIdentifierOf } from '../../../x509/certificate.ts'
import { refusalOf } from '../../../x509/constraints.ts'
import { newSerial } from '../../../x509/serial.ts'
import { type Tbs, writeCertificate, writeTbs } from '../../../x509/tbs.ts'
import { type AuthorityUrls, urlsOfSerial } from '../authority/urls.ts'
import type { SignedCertificate } from './answer.ts'
import { type Contents, extensionsOf } from './extensions.ts'
import { judge } from './judgement.ts'
import type { Validity } from './lifetime.ts'
import { type SignatureWish, signatureFor, warnOfWeakKey } from './signature.ts'

/** Everything that goes into a certificate. */
export interface Order {
  readonly signer: CertificationSigner
  readonly wish: SignatureWish
  /** DER of the issuer's name. */
  readonly issuer: Buffer
  readonly authorityKey: Buffer
  readonly urls: AuthorityUrls
  /** The issuer's certificate and those above it; empty for a self-signed certificate. */
  readonly chain: readonly Certificate[]
  readonly contents: Contents
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer
  /** Used instead of the digest of the key. */
  readonly subjectKey?: Buffer | undefined
  readonly validity: Validity
  warn(text: string): void
}

/**
 * Makes certificates in two steps: the bytes to sign are built and checked whole, then exactly those bytes are signed
 * in the token. Nothing is stored here.
 */
export class Issuance {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * @throws ApiError 400 for a certificate that RFC 5280 makes invalid, that its chain does not allow or that is too
   *   large; 503 while the clocks of host and database differ too much for correct dates
   */
  async sign(order: Order): Promise<SignedCertificate> {
    this.#database.requireClock()
    const { signer, contents, spki, validity, chain, warn } = order
    warnOfWeakKey(signer, warn)
    const name = signatureFor(signer, order.wish)
    const algorithm = signatureAlgorithmOf(name).identifier
    const subjectKey = order.subjectKey ?? keyIdentifierOf(spki)
    const serial = newSerial()
    const urls = urlsOfSerial(order.urls, serial)
    const tbs: Tbs = {
      serial,
      algorithm,
      issuer: order.issuer,
      notBefore: wholeSeconds(validity.notBefore),
      notAfter: wholeSeconds(validity.notAfter),
      subject: contents.subject,
      spki,
      extensions: extensionsOf(contents, { subjectKey, authorityKey: order.authorityKey, urls }),
    }
    const written = writeTbs(tbs)
    check(written, warn)
    const refusal = refusalOfChain(contents, chain)
    if (refusal !== undefined) throw badRequest(refusal)
    const { signature } = await signer.sign(name, written)
    const { notBefore, notAfter } = tbs
    return { der: writeCertificate(written, algorithm, signature), serial, notBefore, notAfter }
  }
}

/** @throws ApiError 400 with every error under RFC 5280 */
function check(tbs: Buffer, warn: (text: string) => void): void {
  const { refusal, warnings } = judge(tbs)
  if (refusal !== undefined) throw badRequest(refusal)
  for (const warning of warnings) warn(warning)
}

/** The reason why constraints of the chain forbid a certificate. @param chain as `Order` has it */
export const refusalOfChain = (
  { subject, names, basicConstraints }: Contents,
  chain: readonly Certificate[],
): string | undefined => refusalOf({ subject, subjectAltName: names, isCa: basicConstraints?.ca === true }, chain)
