import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { signatureAlgorithmOf } from '../../../../crypto/signaturealgorithm.ts'
import { badRequest } from '../../../../errors.ts'
import { text } from '../../../../field.ts'
import { type Call, type Data, type Route, route } from '../../../../route.ts'
import { keyIdentifierOf, readCertificate } from '../../../../x509/certificate.ts'
import { emptyName } from '../../../../x509/name.ts'
import type { Authority } from '../../authority/authority.ts'
import { defaultsAfter } from '../../authority/defaults.ts'
import { checkName } from '../../authority/names.ts'
import { urlsOfNewRoot, warnOfMissingUrls } from '../../authority/urls.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import { caFields, constraintsOf, decideAuthority, pathLengthOf } from '../../issuers/wishes.ts'
import { describeIssued, issuedAnswer, readFormat, type SignedCertificate } from '../../issuing/answer.ts'
import { contentsOf } from '../../issuing/contents.ts'
import { signatureFor } from '../../issuing/signature.ts'
import { keyFields, readSource, type SourcedKey, sourceKey } from '../../keys/keysource.ts'
import { optionalPrivateKey, privateKeyOf } from '../../keys/privatekey.ts'
import { crlIssuersOf } from '../../publication/groups.ts'
import { privateKeyFormat } from '../issue/fields.ts'

const { ca_chain: _chain, ...issued } = issuedAnswer
const root = data(
  Type.Object({
    ...issued,
    ...optionalPrivateKey,
    issuer_id: Type.String(),
    issuer_name: Type.String(),
    key_id: Type.String(),
    key_name: Type.String(),
  }),
)

const body = Type.Object({
  issuer_name: text({ about: 'Name of the new issuer.' }),
  key_name: text({ about: 'Name of the new key.' }),
  key_ref: text({ about: 'The key, for type existing; the default one when absent.' }),
  ...caFields,
  ...keyFields,
  private_key_format: privateKeyFormat,
})
type RootCall = Call<PkiContext, typeof body>

/** Makes the certificate, signed by its own key; neither is stored yet. */
async function selfSign(call: RootCall, authority: Authority, sourced: SourcedKey) {
  const { context, body, mount, warn } = call
  const decision = decideAuthority(body, circumstancesOf(call))
  for (const warning of decision.warnings) warn(warning)
  const signer = sourced.made ? sourced.made.signer : await context.signers.of(sourced.existing)
  const wish = { signatureBits: body.signature_bits ?? 0, usePss: body.use_pss ?? false }
  const contents = {
    ...contentsOf(decision),
    basicConstraints: { ca: true, pathLength: pathLengthOf(body.max_path_length, undefined) },
    nameConstraints: constraintsOf(body),
  }
  if (contents.subject.equals(emptyName)) throw badRequest('a CA certificate needs a subject: give a common_name')
  const urls = urlsOfNewRoot(authority, (url) => warn(`${url} was left out: the id of a new root is not known yet`))
  const certificate = await context.issuance.sign({
    ...{ signer, wish, urls, contents, spki: signer.spki, validity: decision.validity, warn },
    issuer: contents.subject,
    authorityKey: keyIdentifierOf(signer.spki),
    chain: [],
  })
  return { certificate, algorithm: signatureAlgorithmOf(signatureFor(signer, wish)).name, mount }
}

/** Stores key, issuer and certificate in one change. */
async function store(
  { context, mount, body, warn }: RootCall,
  sourced: SourcedKey,
  { certificate: signed, algorithm }: { certificate: SignedCertificate; algorithm: string },
  wantedName: (before: Authority) => string,
) {
  const certificate = readCertificate(signed.der)
  return context.authorities.change(mount, async (tx, before) => {
    const known = sourced.made ? context.keyRows.find(before, sourced.made) : before.keys.get(sourced.existing.id)
    if (sourced.existing && known === undefined) throw badRequest('the key was deleted meanwhile')
    const key = known ?? (await context.keyRows.insert(tx, before, required(sourced.made), body.key_name ?? ''))
    await context.issuerRows.link(tx, before, key)
    const issuer = await context.issuerRows.insert(
      tx,
      before,
      { certificate, name: wantedName(before), revocationSignatureAlgorithm: algorithm },
      () => key,
    )
    await context.certificates.insert(tx, {
      ...{ mount: mount.uuid, serial: certificate.serial.toString('hex'), issuer: issuer.id },
      ...{ der: certificate.der, notAfter: certificate.notAfter },
    })
    const added = { issuers: [issuer], keys: known === undefined ? [key] : [] }
    return { settings: defaultsAfter(before, added, warn), result: { issuer, key } }
  })
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('there is neither a new key nor an existing one')
  return value
}

/** @param usualName of the issuer, if it is free and the request gives none */
async function generate(call: RootCall, usualName: string): Promise<Data> {
  const { context, mount, params, body, warn } = call
  const source = readSource(params.type ?? '', ['internal', 'exported', 'existing', 'kms'])
  const format = readFormat(body.format)
  const authority = await context.authorities.of(mount)
  const { issuer_name: issuerName = '', key_name: keyName = '' } = body
  if (issuerName !== '') checkName('issuer', issuerName, authority.issuerNamed(issuerName) !== undefined)
  if (keyName !== '') checkName('key', keyName, authority.keyNamed(keyName) !== undefined)
  const sourced = await sourceKey(call, authority, source, body)
  try {
    const signed = await selfSign(call, authority, sourced)
    const nameIn = (before: Authority) => issuerName || (before.issuerNamed(usualName) ? '' : usualName)
    const { authority: stored, result } = await store(call, sourced, signed, nameIn)
    warnOfMissingUrls(authority, warn)
    const of = crlIssuersOf(stored, [result.issuer.id])
    for (const warning of await context.crls.rebuild(mount, { of })) warn(warning)
    if (body.max_path_length === 0) {
      warn(
        'Max path length of the generated certificate is zero. This certificate cannot be used to issue intermediate CA certificates.',
      )
    }
    const pkcs8 = sourced.made?.pkcs8
    const privateKey = pkcs8 && privateKeyOf(pkcs8, result.key.type, body.private_key_format)
    const {
      not_before: _,
      ca_chain: _chain,
      ...shown
    } = describeIssued({ certificate: signed.certificate, chain: [], privateKey }, format, [])
    return {
      ...shown,
      issuer_id: result.issuer.id,
      issuer_name: result.issuer.name ?? '',
      key_id: result.key.id,
      key_name: result.key.name ?? '',
    }
  } finally {
    sourced.made?.pkcs8?.fill(0)
    if (sourced.made) await context.newKeys.discard(sourced.made)
  }
}

const rootRoute = (path: string, usualName = ''): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes a self-signed root: with a key that is internal, exported (returned once), existing, or kms.',
    body,
    answers: root,
    run: (call) => generate(call, usualName),
  })

export const generateRoot = rootRoute('root/generate/:type')
export const generateRootIssuer = rootRoute('issuers/generate/root/:type')
export const rotateRoot = rootRoute('root/rotate/:type', 'next')
