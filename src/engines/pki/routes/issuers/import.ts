import { Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { text, wholeBody } from '../../../../field.ts'
import { type Call, type Data, type Route, route } from '../../../../route.ts'
import { warnOfMissingUrls } from '../../authority/urls.ts'
import type { PkiContext } from '../../context.ts'
import { describeImport, importAnswer, importBundle, readImport, wipeKeys } from '../../issuers/imports.ts'
import { crlIssuersOf } from '../../publication/groups.ts'

const body = Type.Object({
  pem_bundle: text({ about: 'Certificates and keys, PEM, not encrypted.', longest: wholeBody }),
  certificate: text({ about: 'Certificates, PEM.' }),
})
type ImportCall = Call<PkiContext, typeof body>

/** @param keysAllowed whether this path accepts keys; the field `certificate` never does */
async function run(call: ImportCall, keysAllowed: boolean): Promise<Data> {
  const { pem_bundle: given = '', certificate = '' } = call.body
  if (given === '' && certificate === '') {
    throw badRequest("'pem_bundle' and 'certificate' parameters were empty")
  }
  if (given !== '' && certificate !== '') {
    throw badRequest("'pem_bundle' and 'certificate' parameters were both provided")
  }
  const bundle = await readImport(given || certificate, keysAllowed && given !== '')
  try {
    const { authority, done } = await importBundle(call, bundle)
    if (done.newIssuers.length > 0) warnOfMissingUrls(authority, call.warn)
    // Certificates of an issuer that was deleted may have been revoked meanwhile.
    if (done.newIssuers.length > 0) await call.context.associations.soon(call.mount.uuid)
    // A known issuer may have received its key.
    const of = crlIssuersOf(
      authority,
      [...done.newIssuers, ...done.newKeys].map(({ id }) => id),
    )
    for (const warning of await call.context.crls.rebuild(call.mount, { of })) call.warn(warning)
    return describeImport(authority, done)
  } finally {
    wipeKeys(bundle)
  }
}

const importRoute = (path: string, about: string, keysAllowed: boolean): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about,
    body,
    answers: importAnswer,
    run: (call) => run(call, keysAllowed),
  })

const withKeys = 'Imports CA certificates and their private keys.'
const withoutKeys = 'Imports CA certificates.'

export const writeCa = importRoute('config/ca', withKeys, true)
export const importIssuers = importRoute('issuers/import/bundle', withKeys, true)
export const importCertificates = importRoute('issuers/import/cert', withoutKeys, false)
export const setSigned = importRoute('intermediate/set-signed', withoutKeys, false)
