import type { CrlRow, Kind, Scope } from './tables.ts'

/** Which list of a CRL issuer: that of a mount and site, or of a mount over all sites. */
export type ListName = Pick<CrlRow, 'mount' | 'crlIssuer' | 'site'> & { readonly scope: Scope; readonly kind: Kind }

/** How a manifest's `published` names a list. */
export const listKey = ({ mount, site, scope, kind }: Omit<ListName, 'crlIssuer'>): string =>
  `${mount} ${scope} ${site} ${kind}`

/** The list that a manifest names so. */
export function nameOfKey(crlIssuer: string, key: string): ListName {
  const [mount = '', scope, site = '', kind] = key.split(' ')
  return {
    ...{ crlIssuer, mount, site },
    scope: scope === 'unified' ? scope : 'local',
    kind: kind === 'delta' ? kind : 'complete',
  }
}

/** The key under which caches hold a list: who publishes it touches (`crlsTable.name`, this). */
export const listCacheKey = (name: ListName): string => `${listKey(name)} ${name.crlIssuer}`
