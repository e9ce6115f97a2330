import { LRUCache } from 'lru-cache'
import { after, nextTurn } from '../../../after.ts'
import type { MaybePromise } from '../../../route.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import type { ReadLane } from '../../../store/pool/pools.ts'
import { unlessDamaged } from '../../../store/sealed/sound.ts'
import { entrySerials } from '../../../x509/crlentry.ts'
import { fingerprintBytes, fingerprintOf, fingerprintsOf, magnitudeOf } from './fingerprints.ts'
import { DigestTable } from './listed/digests.ts'
import { includes } from './listed/ranges.ts'
import type { Manifest, Manifests } from './manifests.ts'
import { markAt } from './marks.ts'
import type { Segments } from './segments.ts'
import { fingerprintsTable, manifestsTable, type SegmentName, type SegmentRow } from './tables.ts'

interface ListedOptions {
  readonly database: Database
  readonly manifests: Manifests
  readonly segments: Segments
}

/** A listed revocation. */
export interface ListedRevocation {
  readonly revokedAt: number
  /** CRLReason. */
  readonly reason: number | undefined
  readonly site: string
}

/** A listed entry that no later one of its site supersedes. */
export interface ListedEntry extends ListedRevocation {
  /** The revocation's number at its site. */
  readonly number: number
  /** When its certificate expires, in whole seconds since 1970. */
  readonly notAfter: number
  /** Whether the list of all sites leaves it out. */
  readonly isElsewhere: boolean
}

/** The segment that has the entries, or that it has grown into. */
interface Place {
  readonly site: string
  segment: SegmentName
}

/** The digests of a CRL issuer's entries, as of one manifest. */
interface Known {
  readonly manifest: Manifest
  readonly table: DigestTable
  /** Place n is at index n - 1. */
  readonly places: readonly Place[]
}

const crlIssuersHeld = 1000

/**
 * The entries on the lists of a CRL issuer, even where their revocations have been removed since. Digests of all
 * entries are kept in memory, loaded on first use and extended with new segments; entries are read only where a digest
 * matches.
 */
export class Listed {
  readonly #options: ListedOptions
  readonly #manifests: CoherentCache<Manifest>
  readonly #known = new LRUCache<string, Known>({ max: crlIssuersHeld })
  readonly #loading = new Map<string, Promise<Known>>()

  constructor(options: ListedOptions) {
    this.#options = options
    this.#manifests = options.database.cache({
      table: manifestsTable.name,
      limit: crlIssuersHeld,
      lane: 'public',
      load: (q, crlIssuer) => options.manifests.read(q, crlIssuer),
    })
  }

  /**
   * The entry of a serial number in the segments of any site, which every complete list built from now on contains;
   * synchronous when there is no entry and nothing to load.
   * @param crlIssuer hexadecimal (`crlIssuerOf`) @param serial hexadecimal @param site whose entries count; all sites'
   * if undefined
   * @throws DamagedRow when segments were edited or removed; ApiError 503 when the public lane is full
   */
  find(crlIssuer: string, serial: string, site?: string): MaybePromise<ListedRevocation | undefined> {
    const magnitude = magnitudeOf(serial)
    return after(this.#manifests.get(crlIssuer), (manifest) => {
      if (manifest === undefined) return undefined
      return after(this.#of(manifest, 'public'), (known) => this.#look(known, magnitude, site))
    })
  }

  /**
   * The entries of serial numbers that are listed already.
   * @param manifest of a snapshot; entries of a later one may be returned too @param serials magnitudes
   * @returns by serial number, in hexadecimal @throws DamagedRow when segments were edited or removed
   */
  async entriesOf(
    manifest: Manifest,
    serials: readonly Buffer[],
  ): Promise<ReadonlyMap<string, readonly ListedEntry[]>> {
    const { table, places } = await this.#of(manifest, 'requests')
    const candidates = new Map<Place, Set<string>>()
    for (const serial of serials) {
      for (const number of table.find(fingerprintOf(serial))) {
        const place = places[number - 1]
        if (place === undefined) continue
        const some = candidates.get(place) ?? new Set()
        candidates.set(place, some.add(serial.toString('hex')))
      }
    }
    const found = new Map<string, ListedEntry[]>()
    for (const [place, some] of candidates) {
      for (const [serial, entry] of await this.#entries(place, some)) {
        found.set(serial, [...(found.get(serial) ?? []), entry])
      }
    }
    return found
  }

  /**
   * An object that is replaced when these lists change. Synchronous when nothing has to be loaded.
   * @throws as find
   */
  state(crlIssuer: string): MaybePromise<object | undefined> {
    return this.#manifests.get(crlIssuer)
  }

  #of(manifest: Manifest, lane: ReadLane): MaybePromise<Known> {
    const { crlIssuer } = manifest
    const known = this.#known.get(crlIssuer)
    // A later manifest's table is right too, and an older one is never loaded.
    if (known !== undefined && known.manifest.rev >= manifest.rev) return known
    const loading = this.#loading.get(crlIssuer)
    if (loading !== undefined) return loading.catch(() => undefined).then(() => this.#of(manifest, lane))
    const made = this.#load(manifest, known, lane)
      .catch((error: unknown) => {
        // The table may hold only part of the manifest.
        this.#known.delete(crlIssuer)
        throw error
      })
      .finally(() => this.#loading.delete(crlIssuer))
    this.#loading.set(crlIssuer, made)
    return made
  }

  async #load(manifest: Manifest, known: Known | undefined, lane: ReadLane): Promise<Known> {
    const { table, places } = carriedOver(manifest, known)
    const at = new Map(places.map((place, index) => [keyOf(place.site, place.segment), { place, number: index + 1 }]))
    for (const [site, { segments }] of Object.entries(manifest.sites)) {
      for (const segment of segments) {
        const found = at.get(keyOf(site, segment))
        if (found?.place.segment.id === segment.id) {
          // Lists may leave out more of its entries by now.
          found.place.segment = segment
          continue
        }
        const fingerprints = await this.#fingerprints(segment.id, lane)
        const number = found?.number ?? places.push({ site, segment })
        if (found !== undefined) found.place.segment = segment
        for (let byte = 0; byte < fingerprints.length; byte += fingerprintBytes) table.add(fingerprints, byte, number)
        await nextTurn()
      }
    }
    const loaded = { manifest, table, places }
    this.#known.set(manifest.crlIssuer, loaded)
    return loaded
  }

  /** The digests of a damaged row are computed again. */
  async #fingerprints(id: string, lane: ReadLane): Promise<Buffer> {
    const { database } = this.#options
    const rows = database.table(fingerprintsTable)
    const row = await database.read((q) => unlessDamaged(() => rows.get(q, id)), lane)
    if (row !== undefined) return row.fingerprints
    return fingerprintsOf((await this.#segment(id, lane)).entries)
  }

  #segment(id: string, lane: ReadLane): Promise<SegmentRow> {
    const { database, segments } = this.#options
    return database.read((q) => segments.get(q, id), lane)
  }

  /** The entries of some serial numbers in a segment. */
  async #entries({ site, segment }: Place, serials: ReadonlySet<string>): Promise<[string, ListedEntry][]> {
    const { superseded = [], elsewhere = [] } = segment
    const { entries, marks } = await this.#segment(segment.id, 'requests')
    const found: [string, ListedEntry][] = []
    let index = 0
    for (const { serial, revokedAt, reason } of entrySerials(entries)) {
      const { number, notAfter } = markAt(marks, index++)
      const name = serial.toString('hex')
      if (!serials.has(name) || includes(superseded, number)) continue
      found.push([name, { site, number, notAfter, revokedAt, reason, isElsewhere: includes(elsewhere, number) }])
    }
    return found
  }

  #look(
    { table, places }: Known,
    serial: Buffer,
    site: string | undefined,
  ): MaybePromise<ListedRevocation | undefined> {
    const numbers = table.find(fingerprintOf(serial))
    if (numbers.length === 0) return undefined
    const found = numbers.flatMap((number) => places[number - 1] ?? [])
    const ofSite = found.filter((place) => site === undefined || place.site === site)
    return ofSite.length === 0 ? undefined : this.#confirm(ofSite, serial)
  }

  async #confirm(places: readonly Place[], serial: Buffer): Promise<ListedRevocation | undefined> {
    for (const place of places) {
      const { entries } = await this.#segment(place.segment.id, 'public')
      for (const entry of entrySerials(entries)) {
        if (entry.serial.equals(serial)) {
          return { revokedAt: entry.revokedAt, reason: entry.reason, site: place.site }
        }
      }
    }
    return undefined
  }
}

/** A segment that grows keeps its first entry. */
const keyOf = (site: string, { first }: SegmentName): string => `${site} ${first}`

/** The table loaded already, or an empty one if segments were removed or lost entries. */
function carriedOver({ sites }: Manifest, known: Known | undefined): { table: DigestTable; places: Place[] } {
  if (known !== undefined) {
    const now = new Map(
      Object.entries(sites).flatMap(([site, { segments }]) => segments.map((one) => [keyOf(site, one), one] as const)),
    )
    const grown = known.places.every(({ site, segment }) => {
      const next = now.get(keyOf(site, segment))
      return next !== undefined && next.count >= segment.count && next.last >= segment.last
    })
    if (grown) return { table: known.table, places: [...known.places] }
  }
  const all = Object.values(sites).flatMap(({ segments }) => segments)
  const room = all.reduce((sum, { count }) => sum + count, 0)
  return { table: new DigestTable(room), places: [] }
}
