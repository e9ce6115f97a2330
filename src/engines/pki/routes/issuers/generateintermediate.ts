import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { writePem } from '../../../../crypto/pem.ts'
import { signatureAlgorithmOf } from '../../../../crypto/signaturealgorithm.ts'
import { badRequest } from '../../../../errors.ts'
import { boolean, integer, text } from '../../../../field.ts'
import { type Call, type Data, type Route, route } from '../../../../route.ts'
import { writeBasicConstraints } from '../../../../x509/extensions/basicconstraints.ts'
import { writeSubjectAltName } from '../../../../x509/extensions/subjectaltname.ts'
import { lintName } from '../../../../x509/lint/names.ts'
import { emptyName } from '../../../../x509/name.ts'
import { makeRequest, makeTemplate } from '../../../../x509/request.ts'
import type { Authority } from '../../authority/authority.ts'
import { defaultsAfter } from '../../authority/defaults.ts'
import type { KeyRow } from '../../authority/tables.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import { decideAuthority, subjectFields } from '../../issuers/wishes.ts'
import { type Format, readFormat } from '../../issuing/answer.ts'
import { contentsOf } from '../../issuing/contents.ts'
import { signatureFor } from '../../issuing/signature.ts'
import { keyFields, readSource, type SourcedKey, sourceKey } from '../../keys/keysource.ts'
import { describePrivateKey, optionalPrivateKey, privateKeyOf } from '../../keys/privatekey.ts'
import { nameFields } from '../../roles/request.ts'
import { privateKeyFormat } from '../issue/fields.ts'

const body = Type.Object({
  key_name: text({ about: 'Name of the new key.' }),
  key_ref: text({ about: 'The key, for type existing; the default one when absent.' }),
  ...nameFields,
  ...subjectFields,
  ...keyFields,
  signature_bits: integer({ about: 'SHA-2 size of the signature of an RSA key: 256, 384 or 512; 0 is 256.' }),
  add_basic_constraints: boolean({ about: 'Whether the request asks for CA:true.' }),
  format: text({ about: 'pem, der or pem_bundle; pem when absent.' }),
  private_key_format: privateKeyFormat,
})
type IntermediateCall = Call<PkiContext, typeof body>

/** @returns DER */
async function requestFor(call: IntermediateCall, sourced: SourcedKey): Promise<Buffer> {
  const { context, body, warn } = call
  const decision = decideAuthority(body, circumstancesOf(call))
  for (const warning of decision.warnings) warn(warning)
  const { subject, names } = contentsOf(decision)
  if (subject.equals(emptyName)) throw badRequest('a CA certificate needs a subject: give a common_name')
  // Only advice: the CA that signs the request decides about the subject.
  for (const { text, rule } of lintName(subject, 'subject')) warn(`${text} (${rule})`)
  const signer = sourced.made ? sourced.made.signer : await context.signers.of(sourced.existing)
  const name = signatureFor(signer, { signatureBits: body.signature_bits ?? 0, usePss: false })
  const extensions = [
    ...(names.length > 0 ? [writeSubjectAltName(names)] : []),
    ...(body.add_basic_constraints ? [writeBasicConstraints({ ca: true })] : []),
  ]
  const { identifier: algorithm } = signatureAlgorithmOf(name)
  return makeRequest({ spki: signer.spki, algorithm }, makeTemplate(subject, extensions), async (info) => {
    const { signature } = await signer.sign(name, info)
    return signature
  })
}

async function store({ context, mount, body, warn }: IntermediateCall, sourced: SourcedKey): Promise<KeyRow> {
  const { made, existing } = sourced
  if (existing) return existing
  const { result } = await context.authorities.change(mount, async (tx, before: Authority) => {
    const known = context.keyRows.find(before, made)
    const key = known ?? (await context.keyRows.insert(tx, before, made, body.key_name ?? ''))
    await context.issuerRows.link(tx, before, key)
    return { settings: defaultsAfter(before, { issuers: [], keys: [key] }, warn), result: key }
  })
  return result
}

/** @param path the source of the key if the URL does not name it */
async function generate(call: IntermediateCall, path: string): Promise<Data> {
  const { context, mount, params, body } = call
  const source = readSource(params.type ?? path, ['internal', 'exported', 'existing', 'kms'])
  const format = readFormat(body.format)
  const sourced = await sourceKey(call, await context.authorities.of(mount), source, body)
  try {
    const csr = await requestFor(call, sourced)
    const key = await store(call, sourced)
    const pkcs8 = sourced.made?.pkcs8
    const privateKey = pkcs8 && privateKeyOf(pkcs8, key.type, body.private_key_format)
    return {
      csr: csrText(csr, format, privateKey?.pem),
      key_id: key.id,
      ...(privateKey ? describePrivateKey(privateKey, format === 'der') : {}),
    }
  } finally {
    sourced.made?.pkcs8?.fill(0)
    if (sourced.made) await context.newKeys.discard(sourced.made)
  }
}

function csrText(csr: Buffer, format: Format, privateKey: string | undefined): string {
  if (format === 'der') return csr.toString('base64')
  const pem = writePem('CERTIFICATE REQUEST', csr)
  return format === 'pem_bundle' && privateKey !== undefined ? `${privateKey}\n${pem}` : pem
}

const intermediateRoute = (path: string, source = ''): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes a certification request for a CA: with a key that is internal, exported, existing, or kms.',
    body,
    answers: data(Type.Object({ csr: Type.String(), key_id: Type.String(), ...optionalPrivateKey })),
    run: (call) => generate(call, source),
  })

export const generateIntermediate = intermediateRoute('intermediate/generate/:type')
export const generateIntermediateIssuer = intermediateRoute('issuers/generate/intermediate/:type')
export const crossSign = intermediateRoute('intermediate/cross-sign', 'existing')
