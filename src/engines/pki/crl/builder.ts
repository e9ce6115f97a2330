import type { Clock } from '../../../clock.ts'
import { unavailable } from '../../../errors.ts'
import { whileRenewed } from '../../../jobs/renewal.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { JobLease } from '../../../store/lease.ts'
import { Absorption } from './absorption.ts'
import type { OnAlarm } from './alarm.ts'
import { Building } from './building.ts'
import { sitesOf } from './ledger.ts'
import { Listed } from './listed.ts'
import { Lists } from './lists.ts'
import { type Manifest, Manifests } from './manifests.ts'
import type { Mark } from './marks.ts'
import { Numbers } from './numbers.ts'
import { EntryRemoval, type Released } from './removal.ts'
import { Restoration } from './restoration.ts'
import { Segments } from './segments.ts'
import { ShardBuilding } from './shards/building.ts'
import { ShardLists } from './shards/lists.ts'
import { segmentsTable, siteOf } from './tables.ts'
import type { BuildTarget, BuiltCrl } from './target.ts'
import { Turns } from './turns.ts'

export interface CrlBuilderOptions {
  readonly database: Database
  readonly clock: Clock
  /** This node's. */
  readonly site: string
  /** The database's epoch, from 1: an accepted restore begins a new one. */
  readonly epoch: number
  readonly onAlarm: OnAlarm
}

const leaseSeconds = 15
const pauseMilliseconds = 50
const patienceMilliseconds = 60_000

/** Builds revocation lists, each by one process at a time. */
export class CrlBuilder {
  readonly manifests: Manifests
  readonly segments: Segments
  readonly lists: Lists
  readonly shardLists: ShardLists
  readonly listed: Listed
  readonly onAlarm: OnAlarm
  readonly #options: CrlBuilderOptions
  readonly #absorption: Absorption
  readonly #restoration: Restoration
  readonly #building: Building
  readonly #removal: EntryRemoval
  readonly #turns = new Turns<BuildTarget, BuiltCrl>((target) => this.#alone(target), merged)

  constructor(options: CrlBuilderOptions) {
    const { database, clock, onAlarm } = options
    this.#options = options
    this.manifests = new Manifests(database)
    this.segments = new Segments({ database, now: () => clock.wall() })
    this.lists = new Lists(database, this.manifests)
    this.shardLists = new ShardLists(database)
    this.onAlarm = onAlarm
    this.listed = new Listed({ database, manifests: this.manifests, segments: this.segments })
    const parts = { database, onAlarm, manifests: this.manifests, segments: this.segments, listed: this.listed }
    this.#restoration = new Restoration(parts)
    // The damaged segment may belong to any site.
    const entriesOf: Listed['entriesOf'] = (manifest, serials) =>
      this.#restoring(manifest.crlIssuer, () => this.listed.entriesOf(manifest, serials))
    this.#absorption = new Absorption({ ...parts, listed: { entriesOf } })
    this.#removal = new EntryRemoval({ ...parts, clock, lists: this.lists })
    const shards = new ShardBuilding({ ...parts, shardLists: this.shardLists })
    const numbers = new Numbers(database, options.epoch)
    this.#building = new Building({ ...parts, clock, lists: this.lists, numbers, shards })
  }

  /**
   * Takes into segments all revocations of a CRL issuer at a site that were committed before. Removed or edited
   * revocations raise alarms.
   * @throws DamagedRow when entries are lost with their revocations
   */
  absorb(crlIssuer: string, site: string): Promise<Manifest> {
    return this.#restoring(crlIssuer, () => this.#absorption.absorb(crlIssuer, site))
  }

  /**
   * Builds and publishes lists of everything committed before; callers that arrive during a build of the same lists
   * share the next one.
   * @returns the published lists: the built ones, or those of another process that cover the wanted revocation
   * @throws ApiError 503 while another process does not finish; DamagedRow when entries are lost with their revocations
   */
  build(target: BuildTarget): Promise<BuiltCrl> {
    return this.#turns.take(`${target.mount} ${target.crlIssuer} ${target.scope}`, target)
  }

  /**
   * Removes entries from segments. An entry stays until every published list has carried it after its certificate
   * expired (RFC 5280 section 3.3).
   * @param isWanted which entries to remove
   * @returns which of the wanted revocations are in no segment any more
   * @throws DamagedRow when a list or entries were edited or removed in SQL
   */
  removeEntries(crlIssuer: string, site: string, isWanted: (mark: Mark) => boolean): Promise<Released> {
    return this.#restoring(crlIssuer, () => this.#removal.remove(crlIssuer, site, isWanted))
  }

  async #alone(order: BuildTarget): Promise<BuiltCrl> {
    const { clock } = this.#options
    const site = siteOf(order.scope, this.#options.site)
    // Half of the digest is unique enough, and fits.
    const name = `crl ${order.mount} ${order.crlIssuer.slice(0, 32)} ${site}`
    const lease = await this.#lease(name)
    try {
      let built: BuiltCrl | undefined
      const held = { name, lease, ttlSeconds: leaseSeconds, clock }
      await whileRenewed(held, new AbortController().signal, async (signal) => {
        const { kinds, lacking = false, covering: wanted } = order
        const target = { ...((await order.current?.()) ?? order), kinds, lacking, covering: wanted }
        built = await this.#restoring(target.crlIssuer, async () => {
          const covering = await this.#building.published(target, site)
          if (covering !== undefined) return covering
          const sites = await this.#absorbAll(target)
          return this.#building.build(target, { site, sites, claim: { job: name, fence: lease.fence }, signal })
        })
      })
      return built as BuiltCrl
    } finally {
      // A lost lease needs no release.
      await lease.release().catch(() => undefined)
    }
  }

  async #lease(name: string): Promise<JobLease> {
    const { database, clock } = this.#options
    const end = clock.monotonic() + patienceMilliseconds
    for (;;) {
      const lease = await database.jobLease(name, leaseSeconds)
      if (lease !== undefined) return lease
      if (clock.monotonic() > end) throw unavailable('another process is building this revocation list')
      await clock.sleep(pauseMilliseconds)
    }
  }

  /** @returns the sites whose entries the list has */
  async #absorbAll({ scope, crlIssuer }: BuildTarget): Promise<readonly string[]> {
    const { database, site } = this.#options
    if (scope === 'local') {
      await this.#absorption.absorb(crlIssuer, site)
      return [site]
    }
    const { sites } = await database.snapshot((q) => this.manifests.read(q, crlIssuer))
    const all = [...new Set([...(await sitesOf(database, crlIssuer)), ...Object.keys(sites)])].toSorted()
    for (const one of all) await this.#absorption.absorb(crlIssuer, one)
    return all
  }

  /** Repeats work that met a damaged segment, once the segment has been rebuilt. */
  async #restoring<T>(crlIssuer: string, work: () => Promise<T>): Promise<T> {
    const restored = new Set<string>()
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof DamagedRow && error.table === segmentsTable.name) || restored.has(error.id)) throw error
        restored.add(error.id)
        await this.#restoration.restore(crlIssuer, error)
      }
    }
  }
}

/** The later caller's settings, and everything that both want. */
function merged(one: BuildTarget, other: BuildTarget): BuildTarget {
  const kinds = one.kinds === 'complete' ? one.kinds : other.kinds
  const [a, b] = [one.covering, other.covering]
  const covering = a !== undefined && b !== undefined && a.site === b.site ? (a.seq > b.seq ? a : b) : undefined
  const lacking = one.lacking === true && other.lacking === true
  return { ...other, kinds, lacking, covering }
}
