import type { Clock } from '../../../clock.ts'
import { mountsTable } from '../../../request/mounts/mount.ts'
import type { Data } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { pages } from '../../../store/pages.ts'
import { unlessDamaged } from '../../../store/sealed/sound.ts'
import { column, defineTable } from '../../../store/table.ts'
import type { Authorities } from '../authority/authorities.ts'
import { type Authority, mayBeUsed } from '../authority/authority.ts'
import { crlsTable } from '../crl/tables.ts'
import type { Crls } from './crls.ts'
import { isLate } from './due.ts'
import { type CrlGroup, groupsOf, hasKey } from './groups.ts'
import { crlSettingsOf } from './settings.ts'

/** Lists whose next update is told, those that expire first. */
const listsTold = 1000
const mountsAtOnce = 500
/** Strangers may ask, and many at once. */
const keptMilliseconds = 30_000

/** What a metric needs of lists: one that was edited hides no other. */
const updatesTable = defineTable(
  crlsTable.name,
  {
    id: column.text(),
    mount: column.text(),
    crlIssuer: column.hex(),
    site: column.text(),
    kind: column.text(),
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

/** What goes wrong with lists before relying parties notice. */
export class ListHealth {
  readonly #options: HealthOptions
  #kept: { readonly at: number; readonly summary: Promise<Summary> } | undefined

  constructor(options: HealthOptions) {
    this.#options = options
  }

  /**
   * How many lists of this site should have been rebuilt by now or are missing, and how many CRL issuers cannot answer OCSP. Numbers
   * alone, for anybody may ask, and up to 30 s old.
   */
  summary(): Promise<Data> {
    const now = this.#options.clock.monotonic()
    if (this.#kept === undefined || now - this.#kept.at > keptMilliseconds) {
      const summary = this.#count()
      this.#kept = { at: now, summary }
      summary.catch(() => {
        this.#kept = undefined
      })
    }
    return this.#kept.summary.then((summary) => ({ ...summary }))
  }

  /** By mount and issuer, the seconds until the next update of complete lists; below 0 when they have expired. */
  async nextUpdates() {
    const { database, clock, authorities, site } = this.#options
    const where = { site, kind: 'complete' }
    const page = { by: ['nextUpdate', 'id'], limit: listsTold, index: 'by_update' } as const
    const rows = await database.read((q) => database.unverified(updatesTable).list(q, where, page))
    const paths = new Map<string, string>()
    for await (const mounts of this.#mounts()) for (const { id, path } of mounts) paths.set(id, path)
    const readings: { readonly labels: Readonly<Record<string, string>>; readonly value: number }[] = []
    for (const { mount: uuid, crlIssuer, nextUpdate } of rows) {
      const mount = paths.get(uuid)
      const group = mount && groupsOf(await authorities.of({ uuid })).get(crlIssuer)
      if (!mount || !group) continue
      const issuer = (group.signer ?? group.issuers[0]).row.id
      readings.push({ labels: { mount, issuer }, value: Math.round((nextUpdate - clock.wall()) / 1000) })
    }
    return readings
  }

  async #count(): Promise<Summary> {
    const summary = { lists_expiring: 0, lists_missing: 0, issuers_without_ocsp_signer: 0 }
    for await (const mounts of this.#mounts()) {
      for (const { id: uuid } of mounts) {
        const authority = await this.#options.authorities.of({ uuid })
        for (const group of groupsOf(authority).values()) await this.#look(authority, group, summary)
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
    const query = { mount, crlIssuer: group.crlIssuer, scope: 'local', kind: 'complete' } as const
    const list = await unlessDamaged(async () => crls.cache.find(query))
    if (list === undefined) summary.lists_missing += group.signer === undefined ? 0 : 1
    else if (isLate(settings, list, clock.wall())) summary.lists_expiring++
  }

  #mounts() {
    const { database } = this.#options
    return pages(database, database.table(mountsTable), { type: 'pki' }, { by: 'path', limit: mountsAtOnce })
  }
}
