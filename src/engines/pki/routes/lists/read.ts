import { Type } from 'typebox'
import { after } from '../../../../after.ts'
import { bytes, data, empty } from '../../../../answers.ts'
import { absent, badRequest } from '../../../../errors.ts'
import {
  Answer,
  type Caching,
  type Call,
  type MaybePromise,
  type Outcome,
  type Route,
  route,
} from '../../../../route.ts'
import type { Authority, Issuer } from '../../authority/authority.ts'
import { issuerOf } from '../../authority/references.ts'
import { notRevoked, revocationTimesAnswer } from '../../certificates/describe.ts'
import type { PkiContext } from '../../context.ts'
import { parseShard, type Shard } from '../../crl/shards/shard.ts'
import type { Kind, Scope } from '../../crl/tables.ts'
import { noFields } from '../../input/page.ts'
import { groupsOf } from '../../publication/groups.ts'
import type { PublishedCrl } from '../../publication/published.ts'
import { crlSettingsOf, millisecondsOf } from '../../publication/settings.ts'

type ReadCall = Call<PkiContext, typeof noFields>

/** The list of a path, and the form of the answer: DER, PEM, or JSON with the PEM in the member `field`. */
interface View {
  readonly kind: Kind
  readonly scope: Scope
  readonly form: 'der' | 'pem' | { readonly field: 'crl' | 'certificate' }
  /**
   * PEM ends with a newline on the paths of an issuer, and without one on those of the default issuer, as in the
   * reference.
   */
  readonly newlineAtEnd: boolean
  readonly portion?: Shard | undefined
}

const types = { der: 'application/pkix-crl', pem: 'application/x-pem-file' } as const
/** A cache asks again after this time: a list may be rebuilt long before its next update. */
const longestSeconds = 3600

/**
 * During the second in which a list is published, Last-Modified names the second before, so that another list of the
 * same second is not taken for it.
 */
function cachingOf(
  { row }: PublishedCrl,
  { settings }: Authority,
  issuer: Issuer,
  delta: number,
  now: number,
): Caching {
  const latest = Math.max(row.thisUpdate, settings.changedAt, issuer.row.changedAt)
  return {
    lastModified: new Date(Math.min(latest, now - 1000)),
    etag: row.sha256.toString('hex').slice(0, 32),
    maxAgeSeconds: Math.min((row.nextUpdate - now) / 1000, delta, longestSeconds),
  }
}

/** The list of an issuer; synchronous when everything is cached. */
function showList(
  { context, mount }: ReadCall,
  authority: Authority,
  issuer: Issuer,
  { kind, scope, form, newlineAtEnd, portion }: View,
): MaybePromise<Outcome> {
  return after(context.crls.find(mount, authority, issuer, { kind, scope, portion }), (list) => {
    if (list === undefined && portion !== undefined) throw absent()
    if (list === undefined) return nothing(form)
    const { enableDelta, deltaRebuildInterval } = crlSettingsOf(authority)
    const delta = kind === 'delta' && enableDelta ? millisecondsOf(deltaRebuildInterval) / 1000 : longestSeconds
    const caching = cachingOf(list, authority, issuer, delta, context.clock.wall())
    if (typeof form === 'string') {
      const bytes = form === 'der' ? list.der() : list.pem(newlineAtEnd)
      return after(bytes, (body) => new Answer({ raw: { type: types[form], body }, caching }))
    }
    // The reference adds these members to a list, as to a certificate.
    const data = form.field === 'crl' ? {} : notRevoked
    return after(list.pemInJson(newlineAtEnd), (text) => new Answer({ data, pem: { name: form.field, text }, caching }))
  })
}

function nothing(form: View['form']): Answer {
  if (typeof form !== 'string') throw absent()
  return new Answer({ status: 204, raw: { type: types[form], body: '' } })
}

const ofDefault = (call: ReadCall, view: View): MaybePromise<Outcome> =>
  after(call.context.authorities.of(call.mount), (authority) => {
    const issuer = authority.defaultIssuer
    if (issuer !== undefined) return showList(call, authority, issuer, view)
    if (typeof view.form !== 'string') throw badRequest('no default issuer currently configured')
    return nothing(view.form)
  })

const ofIssuer = (call: ReadCall, view: View): MaybePromise<Outcome> =>
  after(call.context.authorities.of(call.mount), (authority) =>
    showList(call, authority, issuerOf(authority, call.params.issuer_ref ?? '', 404), view),
  )

/** @throws ApiError 404 for an invalid shard, or a count that was never in a certificate */
const shardOfIssuer = (call: ReadCall, view: View): MaybePromise<Outcome> => {
  const portion = parseShard(call.params.shard ?? '')
  if (portion === undefined) throw absent()
  const reference = call.params.issuer_ref ?? ''
  return after(call.context.authorities.of(call.mount), (authority) => {
    const issuer = heirOf(authority, reference, portion) ?? issuerOf(authority, reference, 404)
    return showList(call, authority, issuer, { ...view, portion })
  })
}

/** Certificates of a deleted issuer have its id in their URLs: an issuer of its name and key serves their lists. */
function heirOf(authority: Authority, reference: string, { of }: Shard): Issuer | undefined {
  if (authority.findIssuer(reference) !== undefined) return undefined
  const { deletedIssuers = [] } = crlSettingsOf(authority)
  const deleted = deletedIssuers.find(({ id, shards }) => id === reference && shards.includes(of))
  return deleted && groupsOf(authority).get(deleted.crlIssuer)?.issuers[0]
}

const inJson = {
  crl: Type.Object({ crl: Type.String() }),
  certificate: Type.Object({ certificate: Type.String(), ...revocationTimesAnswer }),
}

type ListRoute = Route<PkiContext, typeof noFields>

const listRoute = (path: string, about: string, form: View['form'], run: ListRoute['run']): ListRoute =>
  route<PkiContext, typeof noFields>({
    method: 'GET',
    path,
    access: 'public',
    about,
    body: noFields,
    answers: typeof form === 'string' ? [...bytes(types[form]), ...empty] : data(inJson[form.field]),
    run,
  })

const words = {
  complete: 'The list of revoked certificates',
  delta: 'The revocations since the complete list',
} as const
const sites = { local: '', unified: ' over all sites' } as const

/** The three paths of the default issuer for a list: in an envelope, DER, PEM. */
function defaultRoutes(
  kind: Kind,
  scope: Scope,
  name: string,
  path: string,
): readonly [ListRoute, ListRoute, ListRoute] {
  const make = (at: string, shown: string, form: View['form']): ListRoute =>
    listRoute(at, `${words[kind]} of the default issuer${sites[scope]}${shown}.`, form, (call) =>
      ofDefault(call, { kind, scope, form, newlineAtEnd: false }),
    )
  return [
    make(`cert/${name}`, ', PEM in JSON', { field: 'certificate' }),
    make(path, ', DER', 'der'),
    make(`${path}/pem`, ', PEM', 'pem'),
  ]
}

/** The three paths of any issuer for a list: in an envelope, DER, PEM. */
function issuerRoutes(
  kind: Kind,
  scope: Scope,
  path: string,
  { of, run } = { of: '', run: ofIssuer },
): readonly [ListRoute, ListRoute, ListRoute] {
  const make = (at: string, shown: string, form: View['form']): ListRoute =>
    listRoute(`issuer/:issuer_ref/${at}`, `${words[kind]} of ${of}an issuer${sites[scope]}${shown}.`, form, (call) =>
      run(call, { kind, scope, form, newlineAtEnd: true }),
    )
  return [
    make(path, ', PEM in JSON', { field: 'crl' }),
    make(`${path}/der`, ', DER', 'der'),
    make(`${path}/pem`, ', PEM', 'pem'),
  ]
}

export const [readCrlData, readCrlDer, readCrlPem] = defaultRoutes('complete', 'local', 'crl', 'crl')
export const [readDeltaData, readDeltaDer, readDeltaPem] = defaultRoutes('delta', 'local', 'delta-crl', 'crl/delta')
export const [readUnifiedData, readUnifiedDer, readUnifiedPem] = defaultRoutes(
  'complete',
  'unified',
  'unified-crl',
  'unified-crl',
)
export const [readUnifiedDeltaData, readUnifiedDeltaDer, readUnifiedDeltaPem] = defaultRoutes(
  'delta',
  'unified',
  'unified-delta-crl',
  'unified-crl/delta',
)

export const [readIssuerCrlData, readIssuerCrlDer, readIssuerCrlPem] = issuerRoutes('complete', 'local', 'crl')
export const [readIssuerDeltaData, readIssuerDeltaDer, readIssuerDeltaPem] = issuerRoutes('delta', 'local', 'crl/delta')
export const [readIssuerUnifiedData, readIssuerUnifiedDer, readIssuerUnifiedPem] = issuerRoutes(
  'complete',
  'unified',
  'unified-crl',
)
export const [readIssuerUnifiedDeltaData, readIssuerUnifiedDeltaDer, readIssuerUnifiedDeltaPem] = issuerRoutes(
  'delta',
  'unified',
  'unified-crl/delta',
)

const shard = { of: 'a shard of ', run: shardOfIssuer }
export const [readShardData, readShardDer, readShardPem] = issuerRoutes('complete', 'local', 'crl/shard/:shard', shard)
export const [readUnifiedShardData, readUnifiedShardDer, readUnifiedShardPem] = issuerRoutes(
  'complete',
  'unified',
  'unified-crl/shard/:shard',
  shard,
)
