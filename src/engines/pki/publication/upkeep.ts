import { nextTurn } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import type { Job } from '../../../job.ts'
import type { Logger } from '../../../log.ts'
import { mountsTable } from '../../../request/mounts/mount.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import { pages } from '../../../store/pages.ts'
import { unlessDamaged } from '../../../store/sealed/sound.ts'
import { column, defineTable } from '../../../store/table.ts'
import type { Authorities } from '../authority/authorities.ts'
import type { Authority } from '../authority/authority.ts'
import type { CrlBuilder } from '../crl/builder.ts'
import type { Scope } from '../crl/tables.ts'
import { ledgersTable } from '../revocation/tables.ts'
import { jobOfSite } from '../site.ts'
import type { Crls } from './crls.ts'
import { dueKind, isDue, type LastRevocations, type Standing } from './due.ts'
import { type CrlGroup, groupsOf } from './groups.ts'
import { crlSettingsOf } from './settings.ts'

/** The columns that name a ledger, readable even if it was edited. */
const namesTable = defineTable(
  ledgersTable.name,
  { id: column.text(), crlIssuer: column.hex(), site: column.text() },
  { sealed: false },
)

const everySeconds = 60
const rowsAtOnce = 500

interface UpkeepOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly authorities: Authorities
  readonly crls: Crls
  readonly builder: Pick<CrlBuilder, 'absorb'>
  /** This node's. */
  readonly site: string
}

/** By CRL issuer, the numbers of the last revocations. */
type Ledgers = ReadonlyMap<string, LastRevocations>

/** Keeps every list valid and current, even without requests. */
export class Upkeep {
  /** One for the lists of this site, and one for those of all sites, which runs at one of them. */
  readonly jobs: readonly Job[]
  readonly #options: UpkeepOptions
  /** By CRL issuer, the number up to which this worker has had revocations taken into segments. */
  readonly #absorbed = new Map<string, number>()

  constructor(options: UpkeepOptions) {
    this.#options = options
    this.jobs = [
      {
        name: jobOfSite('publish revocation lists', options.site),
        everySeconds,
        run: (signal) => this.runLocal(signal),
      },
      { name: 'publish unified revocation lists', everySeconds, run: (signal) => this.runUnified(signal) },
    ]
  }

  /** Takes this site's revocations into segments and builds its lists that are due. */
  async runLocal(signal: AbortSignal): Promise<void> {
    const ledgers = await this.#ledgers()
    await this.#absorb(ledgers, signal)
    await this.#walk(ledgers, 'local', signal)
  }

  /** Builds the lists over all sites that are due. */
  async runUnified(signal: AbortSignal): Promise<void> {
    await this.#walk(await this.#ledgers(), 'unified', signal)
  }

  /** The last number of an edited ledger is unknown: its lists count as incomplete until it is mended. */
  async #ledgers(): Promise<Ledgers> {
    const { database } = this.#options
    const found = new Map<string, Record<string, number>>()
    const page = { by: 'id', limit: rowsAtOnce } as const
    for await (const names of pages(database, database.unverified(namesTable), {}, page)) {
      const ids = names.map(({ id }) => id)
      const rows = await database.read((q) => database.table(ledgersTable).sound(q, ids))
      const last = new Map(rows.map((row) => [row.id, row.last]))
      for (const { id, crlIssuer, site } of names) {
        found.set(crlIssuer, { ...found.get(crlIssuer), [site]: last.get(id) ?? Number.POSITIVE_INFINITY })
      }
    }
    return found
  }

  async #absorb(ledgers: Ledgers, signal: AbortSignal): Promise<void> {
    const { site, builder } = this.#options
    for (const [crlIssuer, { [site]: last = 0 }] of ledgers) {
      if (signal.aborted) return
      if (last <= (this.#absorbed.get(crlIssuer) ?? 0)) continue
      await this.#try({ crlIssuer, site }, async () => {
        await builder.absorb(crlIssuer, site)
        if (Number.isFinite(last)) this.#absorbed.set(crlIssuer, last)
      })
    }
  }

  async #walk(ledgers: Ledgers, scope: Scope, signal: AbortSignal): Promise<void> {
    const { database, authorities } = this.#options
    const page = { by: 'path', limit: rowsAtOnce } as const
    for await (const mounts of pages(database, database.table(mountsTable), { type: 'pki' }, page)) {
      for (const { id: mount } of mounts) {
        if (signal.aborted) return
        await this.#try({ mount }, async () =>
          this.#publish(await authorities.of({ uuid: mount }), ledgers, scope, signal),
        )
      }
    }
  }

  /** Builds the due lists of a mount. A group that fails does not stop the others. */
  async #publish(authority: Authority, ledgers: Ledgers, scope: Scope, signal: AbortSignal): Promise<void> {
    const { site, clock, crls } = this.#options
    const settings = crlSettingsOf(authority)
    if (scope === 'unified' && !settings.unifiedCrl) return
    const { mount } = authority.settings
    for (const group of groupsOf(authority).values()) {
      if (signal.aborted) return
      await nextTurn()
      if (group.signer === undefined) continue
      await this.#try({ mount, crlIssuer: group.crlIssuer }, async () => {
        const all = ledgers.get(group.crlIssuer) ?? {}
        const last = scope === 'unified' ? all : { [site]: all[site] ?? 0 }
        const now = clock.wall()
        const standing = await this.#standing(mount, group, scope)
        const shards = (await unlessDamaged(() => crls.shards(authority, group, scope))) ?? [undefined]
        const isOld = [standing.complete, ...shards].some((list) => list !== undefined && isDue(settings, list, now))
        const kinds = isOld || shards.includes(undefined) ? 'complete' : dueKind(settings, standing, last, now)
        if (kinds !== undefined) await crls.build(authority, group, { kinds, scope, lacking: !isOld })
      })
    }
  }

  /** A damaged list counts as missing: another one is built in its place. */
  async #standing(mount: string, { crlIssuer }: CrlGroup, scope: Scope): Promise<Standing> {
    const { cache } = this.#options.crls
    try {
      return {
        complete: await cache.read({ mount, crlIssuer, scope, kind: 'complete' }),
        delta: await cache.read({ mount, crlIssuer, scope, kind: 'delta' }),
      }
    } catch (error) {
      if (!(error instanceof DamagedRow)) throw error
      this.#options.crls.alarm(crlIssuer, error)
      return { complete: undefined, delta: undefined }
    }
  }

  async #try(about: Readonly<Record<string, string>>, work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#options.log.warn({ err: error, ...about }, 'revocation lists could not be kept up')
    }
  }
}
