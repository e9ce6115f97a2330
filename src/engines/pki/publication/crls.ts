import { after, nextTurn } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import { ApiError, isUnavailable, unavailable } from '../../../errors.ts'
import type { Logger } from '../../../log.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { Authorities } from '../authority/authorities.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import { issuersTable } from '../authority/tables.ts'
import type { RevocationRow } from '../certificates/tables.ts'
import type { OnAlarm } from '../crl/alarm.ts'
import type { CrlBuilder } from '../crl/builder.ts'
import { carriesPoints } from '../crl/shards/building.ts'
import { cameWithList } from '../crl/shards/lists.ts'
import { type CrlRow, type Kind, type Scope, siteOf } from '../crl/tables.ts'
import type { BuildTarget } from '../crl/target.ts'
import type { Signers } from '../keys/signers.ts'
import { Contents } from './contents.ts'
import { type CrlGroup, groupsOf, hasKey, notInMount, whyUnsigned } from './groups.ts'
import { ListCache, type ListQuery } from './listcache.ts'
import { PublishedCrl, type Sources } from './published.ts'
import { type Repaired, Repairs } from './repairs.ts'
import { crlSettingsOf, scopesOf } from './settings.ts'
import { shardSetsOf, wasSpread } from './shardsets.ts'
import { Streams } from './streams.ts'
import { type ListOrder, targetOf } from './target.ts'
import { withdrawLists } from './withdrawal.ts'

type MountId = Pick<Mount, 'uuid'>

export interface CrlsOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly authorities: Authorities
  readonly signers: Pick<Signers, 'of'>
  readonly builder: CrlBuilder
  /** This node's. */
  readonly site: string
  readonly onAlarm: OnAlarm
}

/** The issuer that was to sign a list was deleted, or may no longer sign it. */
class Unsigned extends Error {}

/** Consecutive builds that find their issuers deleted, while others of the same name and key can sign. */
const mostAttempts = 3

/** Which lists of a mount to build. */
export interface Rebuild {
  /** Complete ones, with their deltas, unless it says `delta`. */
  readonly kinds?: Kind
  /** Only of these CRL issuers. */
  readonly of?: ReadonlySet<string>
}

/** Requests and finds the revocation lists of mounts. */
export class Crls {
  readonly cache: ListCache
  readonly #options: CrlsOptions
  readonly #sources: Sources
  readonly #repairs: Repairs

  constructor(options: CrlsOptions) {
    const { database, clock, builder, site, onAlarm } = options
    this.#options = options
    this.cache = new ListCache({ database, lists: builder.lists, site })
    this.#repairs = new Repairs({ onAlarm, build: (lists) => this.#repair(lists) })
    const contents = new Contents({
      segments: builder.segments,
      onDamage: ({ mount, crlIssuer, scope }, damage) =>
        this.#repairs.begin({ mount, crlIssuer, scope: scope === 'unified' ? scope : 'local' }, damage),
    })
    this.#sources = { contents, streams: new Streams(clock) }
  }

  /**
   * A published list, if any. With unified_crl_on_existing_paths the unified one replaces the local one as soon as it
   * exists.
   * @throws ApiError 503 when the public lane is full, and for a list that was changed in SQL: it is being rebuilt
   */
  find(
    { uuid: mount }: MountId,
    authority: Authority,
    { certificate }: Issuer,
    { kind, scope, portion }: Pick<ListQuery, 'kind' | 'scope' | 'portion'>,
  ): MaybePromise<PublishedCrl | undefined> {
    if (portion !== undefined && !wasSpread(authority, portion.of)) return undefined
    const { unifiedCrl, unifiedCrlOnExistingPaths } = crlSettingsOf(authority)
    const crlIssuer = crlIssuerOf(certificate)
    const find = (wanted: Scope): MaybePromise<PublishedCrl | undefined> =>
      after(
        this.#sound({ mount, crlIssuer, scope: wanted, kind, portion }),
        (row) => row && new PublishedCrl(row, this.#sources),
      )
    if (scope === 'unified') return unifiedCrl ? find(scope) : undefined
    if (!unifiedCrl || !unifiedCrlOnExistingPaths) return find('local')
    return after(find('unified'), (unified) => unified ?? find('local'))
  }

  /**
   * Resolves when the list that names a revocation is published, if that is due at once: not with auto_rebuild, nor
   * while lists are disabled, nor for a revocation of another site. Call it once the revocation is committed.
   * @returns why no list will name it, if the list of its issuer has no signer here
   * @throws ApiError 503 when the list could not be built now: the next one names it
   */
  async revoked(
    mount: MountId,
    { crlIssuer, site, seq }: Pick<RevocationRow, 'crlIssuer' | 'site' | 'seq'>,
  ): Promise<string | undefined> {
    try {
      const authority = await this.#options.authorities.of(mount)
      const { autoRebuild, disable } = crlSettingsOf(authority)
      const group = groupsOf(authority).get(crlIssuer ?? '')
      if (group?.signer === undefined) return whyUnsigned(authority, group)
      // Another site's list is built there, by a job that runs every minute.
      if (autoRebuild || disable || site !== this.#options.site) return undefined
      const covering = seq === null ? undefined : { site, seq }
      return await this.build(authority, group, { kinds: 'complete', scope: 'local', covering, lacking: true })
    } catch (cause) {
      const reason = isUnavailable(cause) ? `: ${cause.message}` : ''
      if (reason === '') this.#logged(cause, { mount: mount.uuid, crlIssuer: crlIssuer ?? '' })
      throw unavailable(`the revocation is recorded, and its list could not be built now${reason}`, { cause })
    }
  }

  /**
   * Builds lists of a mount in every scope it has, one group of issuers after the other. Never rejects: for requests
   * that want something else.
   * @returns why some were not built
   */
  async rebuild(mount: MountId, wanted: Rebuild = {}): Promise<string[]> {
    try {
      const { frozen, failed } = await this.#buildAll(mount, wanted)
      return [...frozen, ...failed]
    } catch (error) {
      return [`error encountered during CRL building: ${this.#logged(error, { mount: mount.uuid })}`]
    }
  }

  /**
   * As rebuild, for requests that want the lists themselves.
   * @returns why some stay as they are
   * @throws ApiError 503 when some could not be built now
   */
  async rotate(mount: MountId, kinds: Kind): Promise<string[]> {
    const { frozen, failed } = await this.#buildAll(mount, { kinds })
    if (failed.length > 0) throw unavailable(failed.join('; '))
    return frozen
  }

  /**
   * Removes the lists of CRL issuers that have no issuer in the mount any more, and rebuilds those of the others. Never
   * rejects.
   * @param gone CRL issuers of deleted issuers
   * @returns why some were not built
   */
  async afterDeletion(mount: MountId, gone: ReadonlySet<string>): Promise<string[]> {
    try {
      const standing = groupsOf(await this.#options.authorities.of(mount))
      for (const crlIssuer of gone) {
        if (!standing.has(crlIssuer)) await withdrawLists(this.#options, mount.uuid, crlIssuer)
      }
    } catch (error) {
      return [`the lists of deleted issuers were not removed: ${this.#logged(error, { mount: mount.uuid })}`]
    }
    return this.rebuild(mount, { of: gone })
  }

  /**
   * Builds the list of a group that has a signer, by the settings when its turn comes, unless it has no signer by then.
   * @returns why it was not built @throws ApiError 400 for a key that is gone; 503
   */
  async build(authority: Authority, group: CrlGroup, order: ListOrder): Promise<string | undefined> {
    const mount = { uuid: authority.settings.mount }
    const standing = async () => {
      const now = await this.#options.authorities.of(mount)
      return { now, found: groupsOf(now).get(group.crlIssuer) }
    }
    const current = async (): Promise<BuildTarget> => {
      const { now, found } = await standing()
      if (found?.signer === undefined) throw new Unsigned()
      return this.#target(now, found, order)
    }
    let target = await this.#target(authority, group, order)
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#options.builder.build({ ...target, current })
        return undefined
      } catch (error) {
        if (!(error instanceof Unsigned)) throw error
      }
      const { now, found } = await standing()
      if (found?.signer === undefined) return whyUnsigned(now, found)
      if (attempt === mostAttempts) throw unavailable('the issuers of this revocation list are being replaced')
      target = await this.#target(now, found, order)
    }
  }

  /**
   * The published shards of a group; undefined in place of each that is missing, was changed in SQL, does not name all
   * its distribution points, or is older than the complete list (cameWithList).
   */
  async shards(authority: Authority, group: CrlGroup, scope: Scope): Promise<readonly (CrlRow | undefined)[]> {
    const { database, builder, site } = this.#options
    const sets = await shardSetsOf(database, authority, group, { scope, site })
    if (sets.length === 0) return []
    const { crlIssuer } = group
    const place = { mount: authority.settings.mount, crlIssuer, site: siteOf(scope, site), scope }
    const name = { ...place, kind: 'complete' } as const
    return database.snapshot(async (q) => {
      const manifest = await builder.manifests.read(q, crlIssuer)
      const found: (CrlRow | undefined)[] = []
      for (const set of sets) {
        const rows = await builder.shardLists.all(q, manifest, name, set.of)
        const isCurrent = cameWithList(manifest, name, set.of)
        found.push(...rows.map((row) => (row !== undefined && isCurrent && carriesPoints(row, set) ? row : undefined)))
      }
      return found
    })
  }

  async #target(authority: Authority, group: CrlGroup, order: ListOrder): Promise<BuildTarget> {
    const { database, signers, site } = this.#options
    const { scope } = order
    const shards = await shardSetsOf(database, authority, group, { scope, site })
    const target = await targetOf(authority, group, order, signers, shards)
    return { ...target, verify: (tx) => this.#requireIssuer(tx, target.mount, group) }
  }

  /** Deleting the issuers may have withdrawn the lists while another one was being signed. */
  async #requireIssuer(tx: Transaction, mount: string, { issuers }: CrlGroup): Promise<void> {
    const table = this.#options.database.table(issuersTable)
    for (const { row } of issuers) if (await table.exists(tx, { mount, id: row.id })) return
    throw new Unsigned()
  }

  async #buildAll(
    mount: MountId,
    { kinds = 'complete', of }: Rebuild,
  ): Promise<{ frozen: string[]; failed: string[] }> {
    const authority = await this.#options.authorities.of(mount)
    const scopes = scopesOf(crlSettingsOf(authority))
    const [frozen, failed]: [string[], string[]] = [[], []]
    for (const group of groupsOf(authority).values()) {
      if (of !== undefined && !of.has(group.crlIssuer)) continue
      const names = group.issuers.map(({ row }) => row.name ?? row.id).join(', ')
      // Where the key is elsewhere, so is the list.
      if (!group.issuers.some((issuer) => hasKey(authority, issuer))) continue
      let unsigned = group.signer === undefined ? whyUnsigned(authority, group) : undefined
      for (const scope of unsigned === undefined ? scopes : []) {
        try {
          unsigned = await this.build(authority, group, { kinds, scope })
        } catch (error) {
          const problem = this.#logged(error, { mount: mount.uuid, crlIssuer: group.crlIssuer })
          failed.push(`error encountered during CRL building: the list of ${names}: ${problem}`)
        }
      }
      // The lists of deleted issuers go with them.
      if (unsigned !== undefined && unsigned !== notInMount) {
        frozen.push(`the list of ${names} stays as it is: ${unsigned}`)
      }
      await nextTurn()
    }
    return { frozen, failed }
  }

  #sound(query: ListQuery): MaybePromise<CrlRow | undefined> {
    const found = this.cache.find(query)
    if (!(found instanceof Promise)) return found
    return found.catch((error: unknown) => {
      throw error instanceof DamagedRow ? this.#repairs.begin(query, error) : error
    })
  }

  /** Raises an alarm about a list that was edited, removed or put back in SQL; the caller rebuilds it. */
  alarm(crlIssuer: string, damage: DamagedRow): void {
    this.#repairs.alarm(crlIssuer, damage)
  }

  /** Raises an alarm and rebuilds lists in the background. @returns 503, for the request that met the damage */
  mend(lists: Repaired, damage: DamagedRow): ApiError {
    return this.#repairs.begin(lists, damage)
  }

  /** The builder rebuilds damaged segments. A list without a signer here stays damaged. */
  async #repair({ mount, crlIssuer, scope }: Repaired): Promise<void> {
    try {
      const authority = await this.#options.authorities.of({ uuid: mount })
      const group = groupsOf(authority).get(crlIssuer)
      if (group?.signer === undefined) return
      await this.build(authority, group, { kinds: 'complete', scope })
    } catch (error) {
      this.#logged(error, { mount, crlIssuer })
    }
  }

  /** @returns the problem in words for the caller */
  #logged(error: unknown, about: Readonly<Record<string, string>>): string {
    this.#options.log.warn({ err: error, ...about }, 'a revocation list was not built')
    return error instanceof ApiError ? error.message : 'internal error'
  }
}
