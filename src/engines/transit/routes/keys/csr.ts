import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { NotDer } from '../../../../crypto/der.ts'
import { readPem, writePem } from '../../../../crypto/pem.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { signatureOf } from '../../../../keys/use/signer.ts'
import { type Call, type Data, route } from '../../../../route.ts'
import { emptyTemplate, makeRequest, readTemplate, type Template } from '../../../../x509/request.ts'
import type { TransitContext } from '../../context.ts'
import { certifiedVersionField } from '../../input/fields.ts'
import { warnOfScheme } from '../../input/scheme.ts'
import { withCertifiableRing } from '../../ring/certifiable.ts'
import type { Ring } from '../../ring/readring.ts'
import { versionToCertify } from '../../ring/versions.ts'

const body = Type.Object({
  version: certifiedVersionField,
  csr: text({ about: 'PEM of a request whose subject and attributes are copied.' }),
})

/** @throws ApiError 400 */
function templateOf(pem: string | undefined): Template {
  if (!pem) return emptyTemplate
  const [der, ...more] = readPem(pem, ['CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST'])
  if (der === undefined || more.length > 0) throw badRequest('could not decode PEM CSR')
  try {
    return readTemplate(der)
  } catch (error) {
    throw error instanceof NotDer ? badRequest('could not decode PEM CSR', { cause: error }) : error
  }
}

const failed = 'could not create the csr'

async function certificationRequest(call: Call<TransitContext, typeof body>, ring: Ring): Promise<Data> {
  const { context, body, warn } = call
  const template = templateOf(body.csr)
  const key = await context.material(versionToCertify(ring, body.version ?? 0, failed).material)
  if (!key.complete) throw badRequest(`${failed}: private key not imported for key version selected`)
  const { algorithm, scheme } = signatureOf(key, 'signing').certification
  warnOfScheme(context, key, scheme, warn)
  const spki = key.publicKey.export({ format: 'der', type: 'spki' })
  const der = await makeRequest({ spki, algorithm }, template, (info) => context.signer.sign(key, info, scheme))
  return { name: ring.key.name, type: ring.key.type, csr: `${writePem('CERTIFICATE REQUEST', der)}\n` }
}

export const requestCertificate = route<TransitContext, typeof body>({
  method: 'POST',
  path: 'keys/:name/csr',
  access: 'token',
  about: 'A certification request for the key, signed by it.',
  body,
  answers: data(Type.Object({ name: Type.String(), type: Type.String(), csr: Type.String() })),
  run: (call) => withCertifiableRing(call, (ring) => certificationRequest(call, ring)),
})
