import { Type } from 'typebox'
import { type Answers, bytes, data, empty } from '../../../../answers.ts'
import { writePem } from '../../../../crypto/pem.ts'
import { absent } from '../../../../errors.ts'
import { Answer, type Caching, type Call, type Outcome, type Route, route } from '../../../../route.ts'
import { parseSerial } from '../../../../x509/serial.ts'
import type { StoredCertificate } from '../../certificates/certificates.ts'
import { describeRevocation, revocationTimesAnswer } from '../../certificates/describe.ts'
import type { PkiContext } from '../../context.ts'
import { noFields } from '../../input/page.ts'

type ReadCall = Call<PkiContext, typeof noFields>

const certificateSeconds = 3600
const serial = /^[0-9A-Fa-f:-]+$/

/** The certificate named in the path, with any separators and case. */
async function find({ context, mount, params }: ReadCall): Promise<StoredCertificate | undefined> {
  const parsed = parseSerial(params.serial ?? '')
  if (parsed === undefined) return undefined
  return context.certificates.find({ mount: mount.uuid, serial: parsed.toString('hex') })
}

const readRoute = (
  path: string,
  about: string,
  answers: Answers,
  run: (call: ReadCall) => Promise<Outcome>,
): Route<PkiContext, typeof noFields> =>
  route<PkiContext, typeof noFields>({
    method: 'GET',
    path,
    captures: { serial },
    access: 'public',
    about,
    body: noFields,
    answers,
    run,
  })

/** A certificate never changes, but may be revoked. */
const cachingOf = ({ certificate, revocation }: StoredCertificate): Caching => ({
  lastModified: new Date(revocation?.revokedAt ?? certificate.createdAt),
  etag: `${certificate.serial}${revocation ? '-revoked' : ''}`,
  maxAgeSeconds: certificateSeconds,
})

async function readData(call: ReadCall): Promise<Outcome> {
  const found = await find(call)
  if (found === undefined) throw absent()
  const { certificate } = found
  return new Answer({
    data: { certificate: writePem('CERTIFICATE', certificate.der), ...describeRevocation(found) },
    caching: cachingOf(found),
  })
}

async function readRaw(call: ReadCall, type: string, write: (der: Buffer) => Buffer | string): Promise<Outcome> {
  const found = await find(call)
  if (found === undefined) return new Answer({ status: 204, raw: { type, body: '' } })
  const { certificate } = found
  return new Answer({ raw: { type, body: write(certificate.der) }, caching: cachingOf(found) })
}

const derType = 'application/pkix-cert'
const pemType = 'application/pem-certificate-chain'
const fileOf = (type: string): Answers => [...bytes(type), ...empty]
const storedCertificate = data(
  Type.Object({
    certificate: Type.String(),
    ...revocationTimesAnswer,
    issuer_id: Type.Optional(Type.String()),
  }),
)

export const readCertificateData = readRoute('cert/:serial', 'A stored certificate.', storedCertificate, readData)
export const readCertificateDer = readRoute('cert/:serial/raw', 'A stored certificate, DER.', fileOf(derType), (call) =>
  readRaw(call, derType, (der) => der),
)
export const readCertificatePem = readRoute(
  'cert/:serial/raw/pem',
  'A stored certificate, PEM.',
  fileOf(pemType),
  (call) => readRaw(call, pemType, (der) => writePem('CERTIFICATE', der)),
)
