import { wholeSeconds } from '../../../clock/moment.ts'
import type { Clock } from '../../../clock.ts'
import type { Claim } from '../../../job.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Reader } from '../../../store/reader.ts'
import type { OnAlarm } from './alarm.ts'
import { completeOf, deltaOf, nothing } from './content.ts'
import type { ListName } from './list.ts'
import type { Lists } from './lists.ts'
import type { Manifest, Manifests } from './manifests.ts'
import type { Numbers } from './numbers.ts'
import type { Segments } from './segments.ts'
import type { ShardBuilding } from './shards/building.ts'
import type { NewShard } from './shards/lists.ts'
import { type CrlRow, crlsTable, type Kind } from './tables.ts'
import type { BuildTarget, BuiltCrl } from './target.ts'
import { type Written, writeList } from './writing.ts'

interface BuildingOptions {
  readonly database: Database
  readonly clock: Clock
  readonly manifests: Manifests
  readonly segments: Segments
  readonly lists: Lists
  readonly numbers: Numbers
  readonly shards: ShardBuilding
  readonly onAlarm: OnAlarm
}

/** The site and the lease of a build. */
interface Place {
  /** '' for lists of all sites. */
  readonly site: string
  /** Sites whose entries the list has. */
  readonly sites: readonly string[]
  readonly claim: Claim
  readonly signal: AbortSignal
}

/** The published lists, and the manifest for the next one. */
interface Basis {
  readonly manifest: Manifest
  /** The complete list. */
  readonly base: CrlRow | undefined
  /** Names of shards that are sound and name all their distribution points. */
  readonly standing: ReadonlySet<string>
}

/** Lists that are published together. */
interface Out {
  readonly lists: ReadonlyMap<Kind, Written>
  /** Undefined for a delta alone. */
  readonly shards: readonly NewShard[] | undefined
}

/** At most as long as segments are kept that no list names any more (retirement.ts): the build could name one. */
const longestMilliseconds = 5 * 60_000

/** Builds the lists of one target: contents, number, signature, publication. */
export class Building {
  readonly #options: BuildingOptions

  constructor(options: BuildingOptions) {
    this.#options = options
  }

  /** The published lists, if they cover the wanted revocation. */
  async published(target: BuildTarget, site: string): Promise<BuiltCrl | undefined> {
    const { covering } = target
    if (covering === undefined || target.disabled) return undefined
    const { database, lists, manifests, shards } = this.#options
    return database.snapshot(async (q) => {
      const name = nameOf(target, site, 'complete')
      if (target.shards.length > 0 && !shards.isOut(target, await manifests.read(q, target.crlIssuer), name)) return
      const [complete, delta] = await Promise.all(
        (['complete', 'delta'] as const).map((kind) =>
          this.#sound(target, () => lists.find(q, nameOf(target, site, kind))),
        ),
      )
      const wanted = target.kinds === 'complete' ? complete : delta
      const isCovered = (wanted?.covered[covering.site] ?? 0) >= covering.seq
      return complete !== undefined && delta !== undefined && isCovered ? { complete, delta } : undefined
    })
  }

  /** Runs under a lease, which is checked when the lists are published. */
  async build(target: BuildTarget, place: Place): Promise<BuiltCrl> {
    const { database, clock, numbers } = this.#options
    const began = clock.monotonic()
    const basis = await database.snapshot((q) => this.#basis(q, target, place))
    const { manifest, base } = basis
    const number = await numbers.next(manifest.crlIssuer, Math.max(0, ...Object.values(manifest.published)))
    const written = await this.#write(target, place, { ...basis, number })
    place.signal.throwIfAborted()
    if (clock.monotonic() - began > longestMilliseconds) throw new Error('a revocation list took too long to build')
    const out = await this.#publish(target, place, written)
    const [complete, delta] = [out.get('complete') ?? base, out.get('delta')]
    if (complete === undefined || delta === undefined) throw new Error('a delta list came out without its complete one')
    return { complete, delta }
  }

  /** A complete list, its empty delta and its shards; or the delta of the complete list that is out. */
  async #write(
    target: BuildTarget,
    { site, sites }: Place,
    { manifest, base, standing, number }: Basis & { readonly number: number },
  ): Promise<Out> {
    const { clock, segments, shards } = this.#options
    const common = { number, thisUpdate: wholeSeconds(clock.wall()) }
    if (target.kinds === 'delta' && base !== undefined) {
      const content = target.disabled ? nothing : deltaOf(manifest, sites, base.covered)
      const delta = await writeList(segments, target, { ...common, base: base.number, content })
      return { lists: new Map([['delta', delta]]), shards: undefined }
    }
    const content = target.disabled ? nothing : completeOf(manifest, sites)
    const none = { ...nothing, covered: content.covered }
    const since = base && deltaOf(manifest, sites, base.covered)
    const name = nameOf(target, site, 'complete')
    return {
      lists: new Map([
        ['complete', await writeList(segments, target, { ...common, base: null, content })],
        ['delta', await writeList(segments, target, { ...common, base: number, content: none })],
      ]),
      shards: await shards.write(target, name, { ...common, content, since }, standing),
    }
  }

  async #basis(q: Reader, target: BuildTarget, { site }: Place): Promise<Basis> {
    const { manifests, lists, shards } = this.#options
    const name = nameOf(target, site, 'complete')
    const [manifest, base] = await Promise.all([
      manifests.read(q, target.crlIssuer),
      this.#sound(target, () => lists.find(q, name)),
    ])
    return { manifest, base, standing: await shards.standing(q, target, manifest, name) }
  }

  /** A list that was edited, removed or put back raises an alarm and counts as missing: a new one replaces it. */
  async #sound(target: BuildTarget, find: () => Promise<CrlRow | undefined>): Promise<CrlRow | undefined> {
    try {
      return await find()
    } catch (error) {
      if (!(error instanceof DamagedRow) || error.table !== crlsTable.name) throw error
      const { crlIssuer } = target
      const text = `a published revocation list was changed in the database: ${error.message}`
      this.#options.onAlarm({ crlIssuer, site: undefined, text })
      return undefined
    }
  }

  /** Publishes lists of one number together. */
  #publish(target: BuildTarget, { site, claim }: Place, written: Out): Promise<ReadonlyMap<Kind, CrlRow>> {
    const { manifests, lists, shards } = this.#options
    return manifests.change(target.crlIssuer, async (tx, now) => {
      await Promise.all([tx.fence(claim.job, claim.fence), target.verify?.(tx)])
      const out = new Map<Kind, CrlRow>()
      let { published } = now
      for (const [kind, list] of written.lists) {
        const name = nameOf(target, site, kind)
        const replaced = await lists.replace(tx, { ...now, published }, { ...name, ...list, shards: 0, shard: 0 })
        if (replaced === undefined) throw new Error('a revocation list of a higher number is out')
        published = replaced.published
        out.set(kind, replaced.row)
      }
      if (written.shards !== undefined) {
        published = await shards.publish(tx, published, target, nameOf(target, site, 'complete'), written.shards)
      }
      return { after: { published }, result: out }
    })
  }
}

const nameOf = ({ mount, crlIssuer, scope }: BuildTarget, site: string, kind: Kind): ListName => ({
  ...{ mount, crlIssuer, site, scope, kind },
})
