import { LRUCache } from 'lru-cache'
import { after, nextTurn } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import { ApiError, unavailable } from '../../../errors.ts'
import type { Logger } from '../../../log.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import type { Authorities } from '../authority/authorities.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import type { RevocationRow } from '../certificates/tables.ts'
import type { CrlBuilder } from '../crl/builder.ts'
import type { CrlRow, Kind, Scope } from '../crl/tables.ts'
import type { BuildTarget } from '../crl/target.ts'
import type { Signers } from '../keys/signers.ts'
import { Contents } from './contents.ts'
import { type CrlGroup, groupsOf, hasKey, whyUnsigned } from './groups.ts'
import { ListCache } from './listcache.ts'
import { PublishedCrl, type Sources } from './published.ts'
import { crlSettingsOf } from './settings.ts'
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
}

const repairMilliseconds = 60_000

/** Whoever was to sign a list was deleted, or may not any more. */
class Unsigned extends Error {}

/** Which lists of a mount to build. */
export interface Rebuild {
  /** Complete ones, with their deltas, unless it says `delta`. */
  readonly kinds?: Kind
  /** Of these CRL issuers alone. */
  readonly of?: ReadonlySet<string>
}

/** The revocation lists of mounts: what asks for them to be built, and where they are found. */
export class Crls {
  readonly cache: ListCache
  readonly #options: CrlsOptions
  readonly #sources: Sources
  /** Lists that were found damaged and built anew lately: strangers ask for them again and again. */
  readonly #repaired = new LRUCache<string, true>({ max: 1000, ttl: repairMilliseconds })

  constructor(options: CrlsOptions) {
    const { database, clock, builder, site } = options
    this.#options = options
    this.cache = new ListCache({ database, lists: builder.lists, site })
    const contents = new Contents({ segments: builder.segments, onDamage: (row) => void this.#repair(row) })
    this.#sources = { contents, streams: new Streams(clock) }
  }

  /**
   * A list that is out; undefined while there is none. With unified_crl_on_existing_paths the unified one stands for the local one
   * as soon as there is one.
   * @throws ApiError 503 when strangers ask for too many at once
   */
  find(
    { uuid: mount }: MountId,
    authority: Authority,
    { certificate }: Issuer,
    { kind, scope }: { readonly kind: Kind; readonly scope: Scope },
  ): MaybePromise<PublishedCrl | undefined> {
    const { unifiedCrl, unifiedCrlOnExistingPaths } = crlSettingsOf(authority)
    const crlIssuer = crlIssuerOf(certificate)
    const find = (wanted: Scope): MaybePromise<PublishedCrl | undefined> =>
      after(
        this.cache.find({ mount, crlIssuer, scope: wanted, kind }),
        (row) => row && new PublishedCrl(row, this.#sources),
      )
    if (scope === 'unified') return unifiedCrl ? find(scope) : undefined
    if (!unifiedCrl || !unifiedCrlOnExistingPaths) return find('local')
    return after(find('unified'), (unified) => unified ?? find('local'))
  }

  /**
   * Resolves when the list that names a revocation is out, where it is to be out at once: not with auto_rebuild, nor while lists
   * are disabled. To be called once the revocation is committed.
   * @returns why no list will name it: nobody here signs the list of its issuer
   * @throws ApiError 503 when the list could not be built now: the next one names it
   */
  async revoked(
    mount: MountId,
    { crlIssuer, site, seq }: Pick<RevocationRow, 'crlIssuer' | 'site' | 'seq'>,
  ): Promise<string | undefined> {
    const authority = await this.#options.authorities.of(mount)
    const { autoRebuild, disable } = crlSettingsOf(authority)
    const group = groupsOf(authority).get(crlIssuer ?? '')
    if (group?.signer === undefined) return whyUnsigned(authority, group)
    if (autoRebuild || disable) return undefined
    const covering = seq === null ? undefined : { site, seq }
    await this.build(authority, group, { kinds: 'complete', scope: 'local', covering })
    return undefined
  }

  /**
   * Builds lists of a mount in every scope it has, one group of issuers after the other. Never rejects: for whom a list is not
   * what was asked for.
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
   * As rebuild, for whom nothing less will do.
   * @returns why some stay as they are
   * @throws ApiError 503 when some could not be built now
   */
  async rotate(mount: MountId, kinds: Kind): Promise<string[]> {
    const { frozen, failed } = await this.#buildAll(mount, { kinds })
    if (failed.length > 0) throw unavailable(failed.join('; '))
    return frozen
  }

  /**
   * Removes the lists of CRL issuers that have no issuer in the mount any more, and builds those of the others anew. Never rejects.
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
   * Builds the list of a group that has a signer, by the settings of when its turn comes; not at all when nobody signs it then.
   * @throws ApiError 400 for a key that is gone; 503
   */
  async build(authority: Authority, group: CrlGroup, order: ListOrder): Promise<void> {
    const { signers, builder, authorities } = this.#options
    const current = async (): Promise<BuildTarget> => {
      const now = await authorities.of({ uuid: authority.settings.mount })
      const standing = groupsOf(now).get(group.crlIssuer)
      if (standing?.signer === undefined) throw new Unsigned()
      return targetOf(now, standing, order, signers)
    }
    try {
      await builder.build({ ...(await targetOf(authority, group, order, signers)), current })
    } catch (error) {
      if (!(error instanceof Unsigned)) throw error
    }
  }

  async #buildAll(
    mount: MountId,
    { kinds = 'complete', of }: Rebuild,
  ): Promise<{ frozen: string[]; failed: string[] }> {
    const authority = await this.#options.authorities.of(mount)
    const scopes: readonly Scope[] = crlSettingsOf(authority).unifiedCrl ? ['local', 'unified'] : ['local']
    const [frozen, failed]: [string[], string[]] = [[], []]
    for (const group of groupsOf(authority).values()) {
      if (of !== undefined && !of.has(group.crlIssuer)) continue
      const names = group.issuers.map(({ row }) => row.name ?? row.id).join(', ')
      if (group.signer === undefined) {
        // Of certificates whose key is elsewhere the list is elsewhere too.
        if (!group.issuers.some((issuer) => hasKey(authority, issuer))) continue
        frozen.push(`the list of ${names} stays as it is: ${whyUnsigned(authority, group)}`)
      }
      for (const scope of group.signer === undefined ? [] : scopes) {
        const problem = await this.#tryBuild(authority, group, { kinds, scope })
        if (problem !== undefined)
          failed.push(`error encountered during CRL building: the list of ${names}: ${problem}`)
      }
      await nextTurn()
    }
    return { frozen, failed }
  }

  /** @returns why it could not be built */
  async #tryBuild(authority: Authority, group: CrlGroup, order: ListOrder): Promise<string | undefined> {
    try {
      await this.build(authority, group, order)
      return undefined
    } catch (error) {
      return this.#logged(error, { mount: authority.settings.mount, crlIssuer: group.crlIssuer })
    }
  }

  /** Builds a list anew that cannot be sent: the builder makes damaged segments again. */
  async #repair({ id, mount, crlIssuer, scope }: CrlRow): Promise<void> {
    if (this.#repaired.has(id)) return
    this.#repaired.set(id, true)
    try {
      const authority = await this.#options.authorities.of({ uuid: mount })
      const group = groupsOf(authority).get(crlIssuer)
      if (group?.signer === undefined) return
      await this.build(authority, group, { kinds: 'complete', scope: scope === 'unified' ? scope : 'local' })
    } catch (error) {
      this.#logged(error, { mount, crlIssuer })
    }
  }

  /** @returns what a caller may know of it */
  #logged(error: unknown, about: Readonly<Record<string, string>>): string {
    this.#options.log.warn({ err: error, ...about }, 'a revocation list was not built')
    return error instanceof ApiError ? error.message : 'internal error'
  }
}
