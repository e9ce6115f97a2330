import { Answer, type Call, type Lease, type Outcome } from '../../../route.ts'
import { DuplicateRow } from '../../../store/faults.ts'
import { keyIdentifierOf } from '../../../x509/certificate.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { urlsOf } from '../authority/urls.ts'
import type { PkiContext } from '../context.ts'
import type { PrivateKey } from '../keys/privatekey.ts'
import { describeIssued, type Format, isRoot, type SignedCertificate } from './answer.ts'
import type { Contents } from './extensions.ts'
import type { Order } from './issuance.ts'
import type { AbleIssuer } from './issuer.ts'
import type { Validity } from './lifetime.ts'
import type { SignatureWish } from './signature.ts'

type IssuingCall = Pick<Call<PkiContext>, 'context' | 'mount' | 'path' | 'caller' | 'warn'>

/** A certificate as decided, with the choices for storing and answering it. */
export interface Leaf {
  readonly authority: Authority
  readonly able: AbleIssuer
  readonly contents: Contents
  readonly spki: Buffer
  readonly validity: Validity
  readonly wish: SignatureWish
  readonly stored: boolean
  readonly leased: boolean
  readonly format: Format
  readonly removeRoots: boolean
  readonly privateKey?: PrivateKey | undefined
}

/** Attempts at a free serial number: serial numbers are random. */
const attempts = 3

/**
 * Signs a certificate, stores it with its lease, and only then answers it.
 * @throws ApiError 4xx as Issuance.sign; 503 if it could not be stored
 */
export async function issueLeaf(call: IssuingCall, leaf: Leaf): Promise<Outcome> {
  const { context, warn } = call
  const { authority, able, contents, spki, validity, wish } = leaf
  const { issuer, key } = able
  const { chain, authorityKey, urls } = issuerPartOf(authority, able)
  const order = {
    ...{ signer: await context.signers.of(key, issuer.certificate), wish, issuer: issuer.certificate.subject },
    ...{ authorityKey, urls, chain, contents, spki, validity, warn },
  }
  const sign = () => context.issuance.sign(order)
  const { certificate, lease } = leaf.stored
    ? await storeCertificate(call, able, sign, leaf.leased)
    : { certificate: await sign(), lease: undefined }
  const listed = leaf.removeRoots ? chain.filter((one) => !isRoot(one)) : chain
  const data = describeIssued({ certificate, chain, privateKey: leaf.privateKey }, leaf.format, listed)
  return lease === undefined ? data : new Answer({ data, lease })
}

/** The parts that an issuer gives to each of its certificates. */
export type IssuerPart = Pick<Order, 'chain' | 'authorityKey' | 'urls'>

/** Computed once for each state of an authority. */
const issuerParts = new WeakMap<Authority, Map<Issuer, IssuerPart>>()

/** @throws ApiError 400 as urlsOf */
export function issuerPartOf(authority: Authority, able: AbleIssuer): IssuerPart {
  const { issuer } = able
  const parts = issuerParts.get(authority) ?? new Map<Issuer, IssuerPart>()
  issuerParts.set(authority, parts)
  const known = parts.get(issuer)
  if (known !== undefined) return known
  const chain = authority.chainOf(issuer).map(({ certificate }) => certificate)
  const part = { chain, authorityKey: authorityKeyOf(able), urls: urlsOf(authority, issuer) }
  parts.set(issuer, part)
  return part
}

/** The identifier of the issuer's key, copied from its certificate (RFC 5280 section 4.2.1.1). */
export function authorityKeyOf({ issuer }: AbleIssuer): Buffer {
  const { certificate } = issuer
  return certificate.subjectKeyId ?? keyIdentifierOf(certificate.spki)
}

/** Signs and stores; if the serial number is taken, another is tried. @param leased whether it comes with a lease */
export async function storeCertificate(
  call: IssuingCall,
  { issuer }: AbleIssuer,
  sign: () => Promise<SignedCertificate>,
  leased = false,
): Promise<{ readonly certificate: SignedCertificate; readonly lease: Lease | undefined }> {
  const { context, mount } = call
  for (let attempt = 1; ; attempt++) {
    const certificate = await sign()
    const { serial, der, notAfter } = certificate
    const row = { mount: mount.uuid, serial: serial.toString('hex'), issuer: issuer.row.id, der, notAfter }
    const lease = leased ? context.leases.prepare(call, context.certificates.leaseRequest(row)) : undefined
    try {
      await context.certificates.store(row, lease)
    } catch (error) {
      if (error instanceof DuplicateRow && attempt < attempts) continue
      throw error
    }
    return { certificate, lease: lease && (await context.leases.confirm(lease)) }
  }
}
