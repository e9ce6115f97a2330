import { LRUCache } from 'lru-cache'
import { after, nextTurn } from '../../../after.ts'
import type { MaybePromise } from '../../../route.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import { unlessDamaged } from '../../../store/sealed/sound.ts'
import { entrySerials } from '../../../x509/crlentry.ts'
import { DigestTable } from './digests.ts'
import { fingerprintBytes, fingerprintOf, fingerprintsOf, magnitudeOf } from './fingerprints.ts'
import type { Manifest, Manifests } from './manifests.ts'
import type { Segments } from './segments.ts'
import { fingerprintsTable, manifestsTable, type SegmentName } from './tables.ts'

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

/** Where entries are: a segment, or what it has grown into. */
interface Place {
  readonly site: string
  segment: SegmentName
}

/** The digests of a CRL issuer's entries, as of one manifest. */
interface Known {
  readonly manifest: Manifest
  readonly table: DigestTable
  /** Of place n at n - 1. */
  readonly places: readonly Place[]
}

const crlIssuersHeld = 1000

/**
 * What the lists of a CRL issuer name, whatever has become of the revocations since. Digests of all entries lie in memory, loaded
 * when they are first asked for and kept up as segments come; an entry that one of them points at is read.
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
   * The entry of a serial number in the segments of any site, which is on every complete list that is built from now on; synchronous
   * when there is none and nothing has to be loaded.
   * @param crlIssuer hexadecimal (`crlIssuerOf`) @param serial hexadecimal
   * @throws DamagedRow when segments were edited or removed; ApiError 503 when the lane of strangers is full
   */
  find(crlIssuer: string, serial: string): MaybePromise<ListedRevocation | undefined> {
    const magnitude = magnitudeOf(serial)
    return after(this.#manifests.get(crlIssuer), (manifest) => {
      if (manifest === undefined) return undefined
      return after(this.#of(manifest), (known) => this.#look(known, magnitude))
    })
  }

  /**
   * Stands for all that these lists name: another object once they have changed. Synchronous when nothing has to be loaded.
   * @throws as find
   */
  state(crlIssuer: string): MaybePromise<object | undefined> {
    return this.#manifests.get(crlIssuer)
  }

  #of(manifest: Manifest): MaybePromise<Known> {
    const { crlIssuer } = manifest
    const known = this.#known.get(crlIssuer)
    // What is as of a later manifest is right too, and nothing is loaded backwards.
    if (known !== undefined && known.manifest.rev >= manifest.rev) return known
    const loading = this.#loading.get(crlIssuer)
    if (loading !== undefined) return loading.catch(() => undefined).then(() => this.#of(manifest))
    const made = this.#load(manifest, known)
      .catch((error: unknown) => {
        // Half of a manifest may be in the table.
        this.#known.delete(crlIssuer)
        throw error
      })
      .finally(() => this.#loading.delete(crlIssuer))
    this.#loading.set(crlIssuer, made)
    return made
  }

  async #load(manifest: Manifest, known: Known | undefined): Promise<Known> {
    const { table, places } = carriedOver(manifest, known)
    const at = new Map(places.map((place, index) => [keyOf(place.site, place.segment), { place, number: index + 1 }]))
    for (const [site, { segments }] of Object.entries(manifest.sites)) {
      for (const segment of segments) {
        const found = at.get(keyOf(site, segment))
        if (found?.place.segment.id === segment.id) continue
        const fingerprints = await this.#fingerprints(segment.id)
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

  /** Those of a damaged row are made again. */
  async #fingerprints(id: string): Promise<Buffer> {
    const { database, segments } = this.#options
    const rows = database.table(fingerprintsTable)
    const row = await database.read((q) => unlessDamaged(() => rows.get(q, id)), 'public')
    if (row !== undefined) return row.fingerprints
    return fingerprintsOf((await database.read((q) => segments.get(q, id), 'public')).entries)
  }

  #look({ table, places }: Known, serial: Buffer): MaybePromise<ListedRevocation | undefined> {
    const numbers = table.find(fingerprintOf(serial))
    return numbers.length === 0
      ? undefined
      : this.#confirm(
          numbers.map((number) => places[number - 1]),
          serial,
        )
  }

  async #confirm(places: readonly (Place | undefined)[], serial: Buffer): Promise<ListedRevocation | undefined> {
    const { database, segments } = this.#options
    for (const place of places) {
      if (place === undefined) continue
      const { entries } = await database.read((q) => segments.get(q, place.segment.id), 'public')
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

/** What is known already, unless segments have gone or lost entries: then all is loaded anew. */
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
