import type { Clock } from '../../../clock.ts'
import { mountsTable } from '../../../request/mounts/mount.ts'
import type { Data } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { pages } from '../../../store/pages.ts'
import { unlessDamaged } from '../../../store/sealed/sound.ts'
import { atLeast, column, defineTable, type Row } from '../../../store/table.ts'
import type { Authorities } from '../authority/authorities.ts'
import { type Authority, mayBeUsed } from '../authority/authority.ts'
import { crlsTable } from '../crl/tables.ts'
import type { Crls } from './crls.ts'
import { isLate } from './due.ts'
import { type CrlGroup, groupsOf, hasKey } from './groups.ts'
import { crlSettingsOf, scopesOf } from './settings.ts'

/** Lists whose next update is reported: those that expire first. */
const listsTold = 1000
const mountsAtOnce = 500
/** The site of unified lists. */
const unifiedSite = ''
/** Anybody may ask, and often. */
const keptMilliseconds = 30_000

/** The columns for a metric, unverified: an edited list hides no other. */
const updatesTable = defineTable(
  crlsTable.name,
  {
    id: column.text(),
    mount: column.text(),
    crlIssuer: column.hex(),
    site: column.text(),
    kind: column.text(),
    shards: column.loose(),
    nextUpdate: column.loose(),
  },
  { sealed: false },
)

interface HealthOptions {
  readonly database: Database
  readonly clock: Clock
  readonly authorities: Authorities
  readonly crls: Crls
  /** This node's. */
  readonly site: string
}

interface Summary {
  lists_expiring: number
  lists_missing: number
  issuers_without_ocsp_signer: number
}

type Update = Row<typeof updatesTable>

/** Of each mount and CRL issuer, the list that expires first. */
function earliest(lists: readonly Update[]): readonly Update[] {
  const first = new Map<string, Update>()
  for (const list of lists.toSorted((a, b) => a.nextUpdate - b.nextUpdate)) {
    const key = `${list.mount} ${list.crlIssuer}`
    if (!first.has(key)) first.set(key, list)
  }
  return [...first.values()]
}

/** Finds problems of lists before relying parties notice. */
export class ListHealth {
  readonly #options: HealthOptions
  #kept: { readonly at: number; readonly summary: Promise<Summary> } | undefined

  constructor(options: HealthOptions) {
    this.#options = options
  }

  /**
   * How many lists of this site should have been rebuilt by now or are missing (of a mount with an edited row, one),
   * and how many CRL issuers cannot answer OCSP. Only counts, since anybody may ask, and up to 30 s old.
   */
  summary(): Promise<Data & Readonly<Summary>> {
    const now = this.#options.clock.monotonic()
    if (this.#kept === undefined || now - this.#kept.at > keptMilliseconds) {
      const summary = this.#count()
      this.#kept = { at: now, summary }
      summary.catch(() => {
        if (this.#kept?.summary === summary) this.#kept = undefined
      })
    }
    return this.#kept.summary.then((summary) => ({ ...summary }))
  }

  /**
   * By mount and issuer, the seconds until the next update of a complete list or shard; below 0 when one has expired.
   */
  async nextUpdates() {
    const { database, clock, site } = this.#options
    const where = { site, kind: 'complete' }
    const page = { by: ['nextUpdate', 'id'], limit: listsTold, index: 'by_update' } as const
    const table = database.unverified(updatesTable)
    // Read separately: a mount's many shards must not crowd out the lists of others.
    const [lists, shards, unified] = await database.read((q) =>
      Promise.all([
        table.list(q, { ...where, shards: 0 }, page),
        table.list(q, { ...where, shards: atLeast(1) }, page),
        table.list(q, { ...where, site: unifiedSite }, page),
      ]),
    )
    const rows = earliest([...lists, ...shards, ...(await this.#served(unified))])
    const paths = new Map<string, string>()
    for await (const mounts of this.#mounts()) for (const { id, path } of mounts) paths.set(id, path)
    const readings: { readonly labels: Readonly<Record<string, string>>; readonly value: number }[] = []
    for (const { mount: uuid, crlIssuer, nextUpdate } of rows) {
      const mount = paths.get(uuid)
      const authority = await this.#authority(uuid)
      const group = authority && groupsOf(authority).get(crlIssuer)
      if (!mount || !group) continue
      const issuer = (group.signer ?? group.issuers[0]).row.id
      readings.push({ labels: { mount, issuer }, value: Math.round((nextUpdate - clock.wall()) / 1000) })
    }
    return readings
  }

  /** Unified lists of mounts that serve them: other mounts may have some left over. */
  async #served(unified: readonly Update[]): Promise<Update[]> {
    const served: Update[] = []
    for (const list of unified) {
      const authority = await this.#authority(list.mount)
      if (authority && crlSettingsOf(authority).unifiedCrl) served.push(list)
    }
    return served
  }

  /** Undefined if one of its rows was edited, so that it hides no other authority. */
  async #authority(uuid: string): Promise<Authority | undefined> {
    return unlessDamaged(async () => this.#options.authorities.of({ uuid }))
  }

  async #count(): Promise<Summary> {
    const summary = { lists_expiring: 0, lists_missing: 0, issuers_without_ocsp_signer: 0 }
    for await (const mounts of this.#mounts()) {
      for (const { id: uuid } of mounts) {
        const authority = await this.#authority(uuid)
        if (authority === undefined) summary.lists_missing++
        else for (const group of groupsOf(authority).values()) await this.#look(authority, group, summary)
      }
    }
    return summary
  }

  async #look(authority: Authority, group: CrlGroup, summary: Summary): Promise<void> {
    const { crls, clock } = this.#options
    const ours = group.issuers.filter((issuer) => hasKey(authority, issuer))
    if (ours.length === 0) return
    const settings = crlSettingsOf(authority)
    if (!settings.ocspDisable && !ours.some((issuer) => mayBeUsed(issuer, 'ocsp-signing'))) {
      summary.issuers_without_ocsp_signer++
    }
    const { mount } = authority.settings
    for (const scope of scopesOf(settings)) {
      const query = { mount, crlIssuer: group.crlIssuer, scope, kind: 'complete' } as const
      const list = await unlessDamaged(async () => crls.cache.find(query))
      const shards = await unlessDamaged(() => crls.shards(authority, group, scope))
      for (const one of [list, ...(shards ?? [])]) {
        // The lists of an issuer that may no longer sign cannot be built.
        if (group.signer === undefined) continue
        if (one === undefined) summary.lists_missing++
        else if (isLate(settings, one, clock.wall())) summary.lists_expiring++
      }
    }
  }

  #mounts() {
    const { database } = this.#options
    return pages(database, database.table(mountsTable), { type: 'pki' }, { by: 'path', limit: mountsAtOnce })
  }
}
