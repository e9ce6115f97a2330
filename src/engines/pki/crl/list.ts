import { parseShard, type Shard, shardName } from './shards/shard.ts'
import type { CrlRow, Kind, Scope } from './tables.ts'

/** Names a list of a CRL issuer: of a mount at one site or over all sites, with all entries or those of a shard. */
export type ListName = Pick<CrlRow, 'mount' | 'crlIssuer' | 'site'> & {
  readonly scope: Scope
  readonly kind: Kind
  readonly portion?: Shard | undefined
}

/** How a manifest's `published` names a list. */
export const listKey = ({ mount, site, scope, kind, portion }: Omit<ListName, 'crlIssuer'>): string =>
  `${mount} ${scope} ${site} ${kind}${portion === undefined ? '' : ` ${shardName(portion)}`}`

/** The inverse of `listKey`. */
export function nameOfKey(crlIssuer: string, key: string): ListName {
  const [mount = '', scope, site = '', kind, shard = ''] = key.split(' ')
  return {
    ...{ crlIssuer, mount, site },
    scope: scope === 'unified' ? scope : 'local',
    kind: kind === 'delta' ? kind : 'complete',
    portion: parseShard(shard),
  }
}

/** The key under which caches hold a list: publishing one touches (`crlsTable.name`, this key). */
export const listCacheKey = (name: ListName): string => `${listKey(name)} ${name.crlIssuer}`
