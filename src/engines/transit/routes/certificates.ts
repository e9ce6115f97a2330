import { type KeyObject, X509Certificate } from 'node:crypto'
import { Type } from 'typebox'
import { NotDer } from '../../../crypto/der.ts'
import { readPem, writePem } from '../../../crypto/pem.ts'
import { badRequest } from '../../../errors.ts'
import { integer, text } from '../../../field.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import { decodePublicKey } from '../../../keys/publickey.ts'
import { certificationOf } from '../../../keys/use/certification.ts'
import { type Call, type Data, route } from '../../../route.ts'
import { emptyTemplate, makeRequest, readTemplate, type Template } from '../../../x509/request.ts'
import type { TransitContext } from '../context.ts'
import { managedType } from '../input/managedtype.ts'
import type { Ring } from '../ring/readring.ts'
import { refuseSoftDeleted, versionToMake } from '../ring/ring.ts'

const version = integer({ about: 'The version of the key; 0 or absent is the latest.' })
const csrBody = Type.Object({
  version,
  csr: text({ about: 'PEM of a request whose subject and attributes are taken.' }),
})
const chainBody = Type.Object({
  version,
  certificate_chain: text({ about: 'PEM certificates: that of the key first, then those of its issuers.' }),
})

const mostCertificates = 20

/** The named key, where it is one that certificates are about. @throws ApiError 400 */
async function ringOf({ context, mount, params }: Call<TransitContext>): Promise<Ring> {
  const { name = '' } = params
  const ring = await context.rings.get(mount, name)
  if (ring === undefined) throw badRequest(`key with provided name '${name}' not found`)
  const { key } = ring
  refuseSoftDeleted(key)
  // A managed key signs by the mechanism it was configured with, which need be none that a request can name.
  if (key.type === managedType || !algorithmOf(key.type).abilities.sign) {
    throw badRequest(`key type '${key.type}' does not support signing`)
  }
  if (key.derived) throw badRequest('operation not supported for keys with derivation enabled')
  return ring
}

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

async function request(call: Call<TransitContext, typeof csrBody>): Promise<Data> {
  const { context, body } = call
  const ring = await ringOf(call)
  const template = templateOf(body.csr)
  const key = await context.material(versionToMake(ring, body.version ?? 0, 'signing').material)
  if (!key.complete) throw badRequest('could not create the csr: private key not imported for key version selected')
  const { algorithm, scheme } = certificationOf(key)
  const spki = key.publicKey.export({ format: 'der', type: 'spki' })
  const der = await makeRequest({ spki, algorithm }, template, (info) => context.signer.sign(key, info, scheme))
  return { name: ring.key.name, type: ring.key.type, csr: `${writePem('CERTIFICATE REQUEST', der)}\n` }
}

/** @throws ApiError 400 for what is no chain, leaf first, of this key */
function readChain(pem: string | undefined, key: KeyObject): string {
  const blocks = readPem(pem ?? '', ['CERTIFICATE', 'X509 CERTIFICATE', 'TRUSTED CERTIFICATE'])
  if (blocks.length === 0) throw badRequest('certificate_chain must hold at least one certificate in PEM')
  if (blocks.length > mostCertificates) throw refuse(`it has more than ${mostCertificates} certificates`)
  const certificates = blocks.map((der, index) => {
    try {
      return new X509Certificate(der)
    } catch (error) {
      throw refuse(`certificate ${index + 1} is malformed`, error)
    }
  })
  const [leaf, ...issuers] = certificates
  if (leaf === undefined || leaf.ca) throw refuse('certificate in the first position is not a leaf certificate')
  if (issuers.some(({ ca }) => !ca)) throw refuse('a certificate behind the first is not a CA certificate')
  if (!sameKey(leaf, key)) throw refuse('leaf certificate public key does not match the selected key version')
  return certificates.map(({ raw }) => writePem('CERTIFICATE', raw)).join('\n')
}

/** The same of a chain that a backup has. @param spki of the version's public key; null for a secret */
export function restoredChain(pem: string, spki: Buffer | null | undefined): string {
  if (spki == null) throw refuse('a secret key has none')
  return readChain(pem, decodePublicKey(spki))
}

const refuse = (why: string, cause?: unknown) => badRequest(`failed to persist certificate chain: ${why}`, { cause })

/** Keys of algorithms that nobody here knows are nobody's. */
function sameKey(leaf: X509Certificate, key: KeyObject): boolean {
  try {
    return leaf.publicKey.equals(key)
  } catch {
    return false
  }
}

async function setChain(call: Call<TransitContext, typeof chainBody>): Promise<Data> {
  const { context, mount, params, body } = call
  const before = await ringOf(call)
  const { version, material } = versionToMake(before, body.version ?? 0, 'signing')
  const certificateChain = readChain(body.certificate_chain, (await context.material(material)).publicKey)
  const { name = '' } = params
  await context.rings.change(mount, name, `key with provided name '${name}' not found`, async (tx, ring) => {
    if (ring.key.id !== before.key.id || !ring.versions.has(version)) throw badRequest('no such key version')
    await context.rings.changeVersion(tx, ring, version, { certificateChain })
  })
  return { name: before.key.name, type: before.key.type, certificate_chain: certificateChain }
}

export const certificateRoutes = [
  route<TransitContext, typeof csrBody>({
    method: 'POST',
    path: 'keys/:name/csr',
    access: 'token',
    about: 'A certification request for the key, signed by it.',
    body: csrBody,
    danger: 'none',
    run: request,
  }),
  route<TransitContext, typeof chainBody>({
    method: 'POST',
    path: 'keys/:name/set-certificate',
    access: 'token',
    about: 'Keeps the chain of certificates of a key version with it.',
    body: chainBody,
    danger: 'none',
    run: setChain,
  }),
]
