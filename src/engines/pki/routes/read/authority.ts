import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import { type Answers, bytes, data, empty, strings } from '../../../../answers.ts'
import { badRequest } from '../../../../errors.ts'
import { Answer, type Caching, type Call, type Outcome, type Route, route } from '../../../../route.ts'
import type { Authority, Issuer } from '../../authority/authority.ts'
import { pemLine, pemOf } from '../../authority/pem.ts'
import { issuerOf } from '../../authority/references.ts'
import { notRevoked, revocationTimesAnswer } from '../../certificates/describe.ts'
import type { PkiContext } from '../../context.ts'
import { noFields } from '../../input/page.ts'

type ReadCall = Call<PkiContext, typeof noFields>

const certificateType = 'application/pkix-cert'
const pemType = 'application/pem-certificate-chain'
/** Seconds for which a certificate may be used without asking again. */
const certificateSeconds = 3600

/**
 * The caching of every answer about an issuer; some show its chain, so a change of any certificate of the chain changes
 * it.
 */
function cachingOf(authority: Authority, issuer: Issuer): Caching {
  const digest = createHash('sha256')
  let latest = authority.settings.changedAt
  for (const { row } of authority.chainOf(issuer)) {
    digest.update(row.fingerprint).update(String(row.rev))
    latest = Math.max(latest, row.changedAt)
  }
  return {
    lastModified: new Date(latest),
    etag: digest.digest('hex').slice(0, 32),
    maxAgeSeconds: certificateSeconds,
  }
}

const nothing = (type: string): Answer => new Answer({ status: 204, raw: { type, body: '' } })

/** A raw answer about the default issuer, or 204 while the mount has no default issuer. */
async function ofDefault(
  { context, mount }: ReadCall,
  type: string,
  write: (issuer: Issuer, authority: Authority) => string | Buffer,
): Promise<Outcome> {
  const authority = await context.authorities.of(mount)
  const issuer = authority.defaultIssuer
  if (issuer === undefined) return nothing(type)
  return new Answer({ raw: { type, body: write(issuer, authority) }, caching: cachingOf(authority, issuer) })
}

async function ofIssuer(
  { context, mount, params }: ReadCall,
  write: (issuer: Issuer, authority: Authority) => ConstructorParameters<typeof Answer>[0],
): Promise<Outcome> {
  const authority = await context.authorities.of(mount)
  const issuer = issuerOf(authority, params.issuer_ref ?? '', 404)
  return new Answer({ ...write(issuer, authority), caching: cachingOf(authority, issuer) })
}

const publicRead = (
  path: string,
  about: string,
  answers: Answers,
  run: (call: ReadCall) => Promise<Outcome>,
): Route<PkiContext, typeof noFields> =>
  route<PkiContext, typeof noFields>({
    method: 'GET',
    path,
    access: 'public',
    about,
    body: noFields,
    answers,
    run,
  })

const derFile = [...bytes(certificateType), ...empty]
const pemFile = [...bytes(pemType), ...empty]

const der = ({ certificate }: Issuer): Buffer => certificate.der

export const readCa = publicRead('ca', 'The certificate of the default issuer, DER.', derFile, (call) =>
  ofDefault(call, certificateType, der),
)
export const readCaPem = publicRead('ca/pem', 'The certificate of the default issuer, PEM.', pemFile, (call) =>
  ofDefault(call, pemType, ({ certificate }) => pemOf(certificate)),
)
export const readCaRaw = publicRead('cert/ca/raw', 'The certificate of the default issuer, DER.', derFile, (call) =>
  ofDefault(call, certificateType, der),
)
export const readCaRawPem = publicRead(
  'cert/ca/raw/pem',
  'The certificate of the default issuer, PEM.',
  pemFile,
  (call) => ofDefault(call, pemType, ({ certificate }) => pemOf(certificate)),
)

const chainPem = (issuer: Issuer, authority: Authority): string =>
  authority
    .chainOf(issuer)
    .map(({ certificate }) => pemOf(certificate))
    .join('\n')

/** The type is the reference's, although the body is PEM. */
export const readCaChain = publicRead('ca_chain', 'The chain of the default issuer, PEM.', derFile, (call) =>
  ofDefault(call, certificateType, chainPem),
)

const certificateAnswer = { certificate: Type.String(), ...revocationTimesAnswer }

async function defaultAsData(
  { context, mount }: ReadCall,
  write: (issuer: Issuer, authority: Authority) => Readonly<Record<string, string>>,
): Promise<Outcome> {
  const authority = await context.authorities.of(mount)
  const issuer = authority.defaultIssuer
  if (issuer === undefined) throw badRequest('no default issuer currently configured')
  const data = { ...write(issuer, authority), ...notRevoked }
  return new Answer({ data, caching: cachingOf(authority, issuer) })
}

export const readCaData = publicRead(
  'cert/ca',
  'The certificate of the default issuer.',
  data(Type.Object(certificateAnswer)),
  (call) => defaultAsData(call, (issuer) => ({ certificate: pemOf(issuer.certificate) })),
)
export const readCaChainData = publicRead(
  'cert/ca_chain',
  'The chain of the default issuer.',
  data(Type.Object({ ...certificateAnswer, ca_chain: Type.String() })),
  (call) =>
    defaultAsData(call, (issuer, authority) => {
      const chain = chainPem(issuer, authority)
      return { certificate: chain, ca_chain: chain }
    }),
)

export const readIssuerData = publicRead(
  'issuer/:issuer_ref/json',
  'The certificate of an issuer and its chain.',
  data(
    Type.Object({
      certificate: Type.String(),
      ca_chain: strings,
      issuer_id: Type.String(),
      issuer_name: Type.String(),
    }),
  ),
  (call) =>
    ofIssuer(call, (issuer, authority) => ({
      data: {
        certificate: pemLine(issuer),
        ca_chain: authority.chainOf(issuer).map(pemLine),
        issuer_id: issuer.row.id,
        issuer_name: issuer.row.name ?? '',
      },
    })),
)
export const readIssuerDer = publicRead(
  'issuer/:issuer_ref/der',
  'The certificate of an issuer, DER.',
  derFile,
  (call) => ofIssuer(call, (issuer) => ({ raw: { type: certificateType, body: der(issuer) } })),
)
export const readIssuerPem = publicRead(
  'issuer/:issuer_ref/pem',
  'The certificate of an issuer, PEM.',
  pemFile,
  (call) => ofIssuer(call, (issuer) => ({ raw: { type: pemType, body: pemLine(issuer) } })),
)
