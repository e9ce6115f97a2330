import { ApiError } from '../../../errors.ts'
import type { Database } from '../../../store/database.ts'
import type { Authority, Cluster } from '../authority/authority.ts'
import { clustersTable } from '../authority/tables.ts'
import { expandPoint } from '../authority/urls.ts'
import type { ShardPoint } from '../crl/settings.ts'
import type { Scope } from '../crl/tables.ts'
import type { ShardSet } from '../crl/target.ts'
import type { CrlGroup } from './groups.ts'

/** The URLs of a mount at a site. */
interface Place extends Cluster {
  readonly site: string
}

const mostSites = 1000

/**
 * All shard counts that the certificates of a group were ever spread over, with the URLs in them: of this site, or of
 * all.
 * @param site this node's
 */
export async function shardSetsOf(
  database: Database,
  authority: Authority,
  group: CrlGroup,
  { scope, site }: { readonly scope: Scope; readonly site: string },
): Promise<readonly ShardSet[]> {
  const { points = [], deletedIssuers = [] } = authority.settings.crl ?? {}
  if (points.length === 0) return []
  const deleted = deletedIssuers.filter(({ crlIssuer }) => crlIssuer === group.crlIssuer)
  const here = { ...authority.cluster, site }
  const places = scope === 'local' ? [here] : await allPlaces(database, authority.settings.mount, here)
  const urls = new Map<number, Set<string>>()
  for (const point of points) {
    const known = urls.get(point.shards) ?? new Set()
    const told = deleted.filter(({ shards }) => shards.includes(point.shards))
    const ids = [...group.issuers.map(({ row }) => row.id), ...told.map(({ id }) => id)]
    for (const url of expansionsOf(point, ids, places)) known.add(url)
    urls.set(point.shards, known)
  }
  return [...urls].flatMap(([of, some]) => (some.size === 0 ? [] : [{ of, urls: [...some] }]))
}

/** Whether certificates of an authority were ever spread over so many lists. */
export const wasSpread = ({ settings }: Authority, shards: number): boolean =>
  settings.crl?.points?.some((point) => point.shards === shards) ?? false

async function allPlaces(database: Database, mount: string, here: Place): Promise<readonly Place[]> {
  const page = { by: 'site', limit: mostSites } as const
  const rows = await database.read((q) => database.table(clustersTable).list(q, { mount }, page))
  return [here, ...rows.filter((row) => row.site !== here.site)].toSorted((a, b) => (a.site < b.site ? -1 : 1))
}

/** No certificate has the URL of a site without an address. @param ids of the issuers whose certificates have it */
function expansionsOf(
  { url, issuer, site }: ShardPoint,
  ids: readonly string[],
  places: readonly Place[],
): readonly string[] {
  const expanded = (place: Place, id: string): string[] => {
    try {
      return [expandPoint(url, place, id)]
    } catch (error) {
      if (error instanceof ApiError) return []
      throw error
    }
  }
  const own = ids.filter((id) => issuer === '' || id === issuer)
  return places
    .filter((place) => site === '' || site === place.site)
    .flatMap((place) => own.flatMap((id) => expanded(place, id)))
}
