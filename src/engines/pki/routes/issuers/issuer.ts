import { Type } from 'typebox'
import { noData } from '../../../../answers.ts'
import { unlessUnavailable } from '../../../../errors.ts'
import { boolean, commaList, ownList, text } from '../../../../field.ts'
import { Answer, type Call, type Data, type Outcome, route } from '../../../../route.ts'
import { crlIssuerOf } from '../../authority/crlissuer.ts'
import { issuerOf } from '../../authority/references.ts'
import { issuerUsages } from '../../authority/tables.ts'
import { problemOf, unusedPointsOf } from '../../authority/urls.ts'
import type { PkiContext } from '../../context.ts'
import { noFields } from '../../input/page.ts'
import { describeIssuer, issuerAnswer } from '../../issuers/describe.ts'
import { issuerChanges, wholeUpdate } from '../../issuers/settings.ts'
import { rolesReferringTo } from '../../roles/referring.ts'

type IssuerCall = Call<PkiContext, typeof noFields>

export const readIssuer = route<PkiContext, typeof noFields>({
  method: 'GET',
  path: 'issuer/:issuer_ref',
  access: 'token',
  about: 'An issuer with its settings.',
  body: noFields,
  answers: issuerAnswer,
  async run({ context, mount, params }: IssuerCall) {
    const authority = await context.authorities.of(mount)
    return describeIssuer(authority, issuerOf(authority, params.issuer_ref ?? '', 404))
  },
})

const body = Type.Object({
  issuer_name: text({ about: 'The name; empty removes it.', initial: '' }),
  leaf_not_after_behavior: text({
    about: 'Treatment of a leaf that would outlast the issuer: err, truncate or permit.',
    initial: 'err',
  }),
  manual_chain: commaList({
    about: 'Issuers of the chain, from this issuer to its root; empty for a chain built automatically.',
    initial: [],
  }),
  usage: ownList({ about: 'read-only, issuing-certificates, crl-signing, ocsp-signing.', initial: issuerUsages }),
  revocation_signature_algorithm: text({
    about: 'Signature algorithm of revocation lists; empty for the usual one of the key.',
    initial: '',
  }),
  issuing_certificates: commaList({ about: 'URLs of its certificate, instead of the mount’s.', initial: [] }),
  crl_distribution_points: commaList({ about: 'URLs of its lists, instead of the mount’s.', initial: [] }),
  ocsp_servers: commaList({ about: 'URLs of its OCSP responders, instead of the mount’s.', initial: [] }),
  enable_aia_url_templating: boolean({
    about: 'Whether {{issuer_id}} and the like are expanded in these URLs.',
    initial: false,
  }),
})
type UpdateCall = Call<PkiContext, typeof body>

const onlyLists =
  'revocation lists are signed with PSS; OCSP answers of this issuer are signed with PKCS#1 v1.5 and the same hash'

/** @param whole whether absent fields return to their defaults */
async function update({ context, mount, params, body, warn }: UpdateCall, whole: boolean): Promise<Data> {
  const { authority, result, pointsChanged } = await context.authorities.change(mount, async (tx, before) => {
    const issuer = issuerOf(before, params.issuer_ref ?? '')
    const fields = whole ? wholeUpdate(body) : body
    await context.issuerRows.update(tx, issuer.row, issuerChanges(before, issuer, fields))
    return { result: issuer.row.id }
  })
  const issuer = issuerOf(authority, result)
  const { aia } = issuer.row
  const problem = aia === null ? undefined : problemOf(authority, aia)
  if (problem !== undefined) warn(`issuance may fail: ${problem}`)
  const pssOnly = issuer.certificate.publicKey().asymmetricKeyType === 'rsa-pss'
  if (body.revocation_signature_algorithm?.endsWith('PSS') && !pssOnly) warn(onlyLists)
  const of = new Set([crlIssuerOf(issuer.certificate)])
  if (pointsChanged) for (const warning of await context.crls.rebuild(mount, { of })) warn(warning)
  const unused = aia === null ? undefined : unusedPointsOf(authority, aia)
  if (unused !== undefined) warn(unused)
  return describeIssuer(authority, issuer)
}

const updateRoute = (method: 'POST' | 'PATCH', about: string) =>
  route<PkiContext, typeof body>({
    method,
    path: 'issuer/:issuer_ref',
    access: 'token',
    about,
    body,
    answers: issuerAnswer,
    run: (call) => update(call, method === 'POST'),
  })

export const writeIssuer = updateRoute(
  'POST',
  'Sets every setting of an issuer; absent fields return to their defaults.',
)
export const patchIssuer = updateRoute('PATCH', 'Changes settings of an issuer.')

/** An unknown issuer counts as already removed. */
async function remove({ context, mount, params, warn }: IssuerCall): Promise<Outcome> {
  const reference = params.issuer_ref ?? ''
  const { result } = await context.authorities.change(mount, async (tx, before) => {
    const issuer = before.findIssuer(reference)
    if (issuer === undefined) return { result: undefined }
    await context.issuerRows.remove(tx, issuer.row)
    const wasDefault = before.settings.defaultIssuer === issuer.row.id
    const changedAt = context.clock.wall()
    return { settings: { changedAt, ...(wasDefault ? { defaultIssuer: '' } : {}) }, result: { issuer, wasDefault } }
  })
  if (result === undefined) return new Answer({ data: null })
  const { issuer, wasDefault } = result
  const names = [issuer.row.id, ...(issuer.row.name ? [issuer.row.name] : []), ...(wasDefault ? ['default'] : [])]
  const gone = new Set([crlIssuerOf(issuer.certificate)])
  for (const warning of await context.crls.afterDeletion(mount, gone)) warn(warning)
  const using = (await rolesReferringTo(context.database, mount, names).catch(unlessUnavailable)) ?? 0
  if (using > 0) warn(`${using} roles reference ${reference}`)
  if (wasDefault) {
    warn(
      `Deleted issuer ${issuer.row.id} (via issuer_ref ${reference}); this was configured as the default issuer. Operations without an explicit issuer will not work until a new default is configured.`,
    )
  }
  return new Answer({ data: null })
}

export const deleteIssuer = route<PkiContext, typeof noFields>({
  method: 'DELETE',
  path: 'issuer/:issuer_ref',
  access: 'token',
  about: 'Removes an issuer; its key stays.',
  body: noFields,
  answers: noData(),
  run: remove,
})

/** All are removed in one change: there are never issuers without keys in between. */
async function removeAll({ context, mount, warn }: IssuerCall): Promise<Outcome> {
  const { result: gone } = await context.authorities.change(mount, async (tx, before) => {
    for (const { row } of before.issuers.values()) await context.issuerRows.remove(tx, row)
    for (const key of before.keys.values()) await context.keyRows.remove(tx, key)
    const result = new Set([...before.issuers.values()].map(({ certificate }) => crlIssuerOf(certificate)))
    return { settings: { defaultIssuer: '', defaultKey: '' }, result }
  })
  for (const warning of await context.crls.afterDeletion(mount, gone)) warn(warning)
  warn('All issuers and keys were deleted; the mount cannot be used until there are new ones.')
  return new Answer({ data: null })
}

export const deleteRoot = route<PkiContext, typeof noFields>({
  method: 'DELETE',
  path: 'root',
  access: 'sudo',
  about: 'Removes every issuer and key of the mount.',
  body: noFields,
  answers: noData(),
  run: removeAll,
})
