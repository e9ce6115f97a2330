import { after } from '../../../../after.ts'
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
import type { PkiContext } from '../../context.ts'
import type { Kind, Scope } from '../../crl/tables.ts'
import { noFields } from '../../input/page.ts'
import type { PublishedCrl } from '../../publication/published.ts'
import { crlSettingsOf, millisecondsOf } from '../../publication/settings.ts'

type ReadCall = Call<PkiContext, typeof noFields>

/** Which list a path is about, and how it shows it. `json` has the PEM in the member `field`. */
interface View {
  readonly kind: Kind
  readonly scope: Scope
  readonly form: 'der' | 'pem' | { readonly field: 'crl' | 'certificate' }
  /** PEM ends with a newline on the paths of an issuer, and without one on those of the default issuer, as in the reference. */
  readonly newlineAtEnd: boolean
}

const types = { der: 'application/pkix-crl', pem: 'application/x-pem-file' } as const
/** A cache between asks again after so long: a list may be rebuilt long before its next update. */
const longestSeconds = 3600

/**
 * An answer of the second in which its list came out names the second before: a list that follows within the same one is then
 * not taken for it.
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
  { kind, scope, form, newlineAtEnd }: View,
): MaybePromise<Outcome> {
  return after(context.crls.find(mount, authority, issuer, { kind, scope }), (list) => {
    if (list === undefined) return nothing(form)
    const { enableDelta, deltaRebuildInterval } = crlSettingsOf(authority)
    const delta = kind === 'delta' && enableDelta ? millisecondsOf(deltaRebuildInterval) / 1000 : longestSeconds
    const caching = cachingOf(list, authority, issuer, delta, context.clock.wall())
    if (typeof form === 'string') {
      const bytes = form === 'der' ? list.der() : list.pem(newlineAtEnd)
      return after(bytes, (body) => new Answer({ raw: { type: types[form], body }, caching }))
    }
    const data = form.field === 'crl' ? {} : neverRevoked
    return after(list.pemInJson(newlineAtEnd), (text) => new Answer({ data, pem: { name: form.field, text }, caching }))
  })
}

/** Members that the reference has beside the list, as beside a certificate. */
const neverRevoked = { revocation_time: 0, revocation_time_rfc3339: '' }

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

type ListRoute = Route<PkiContext, typeof noFields>

const listRoute = (path: string, about: string, form: View['form'], run: ListRoute['run']): ListRoute =>
  route<PkiContext, typeof noFields>({
    method: 'GET',
    path,
    access: 'public',
    about,
    body: noFields,
    ...(typeof form === 'string' ? { rawTypes: [types[form]] } : {}),
    run,
  })

const words = {
  complete: 'The list of revoked certificates',
  delta: 'What was revoked since the complete list',
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
function issuerRoutes(kind: Kind, scope: Scope, path: string): readonly [ListRoute, ListRoute, ListRoute] {
  const make = (at: string, shown: string, form: View['form']): ListRoute =>
    listRoute(`issuer/:issuer_ref/${at}`, `${words[kind]} of an issuer${sites[scope]}${shown}.`, form, (call) =>
      ofIssuer(call, { kind, scope, form, newlineAtEnd: true }),
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
