import type { Database } from '../../../store/database.ts'
import type { Reading } from '../../../store/sealed/access.ts'
import { column, defineTable } from '../../../store/table.ts'
import { revocationTable } from '../certificates/tables.ts'
import { queueTable } from './tables.ts'

/** One page of a listing, in the order of serial numbers. */
export interface RevocationPage {
  /** A serial in hexadecimal; the page begins after it. */
  readonly after?: string
  readonly limit: number
}

/** The columns of revocations that an index contains. Unverified, as in all listings. */
const revokedSerials = defineTable(
  revocationTable.name,
  { mount: column.text(), site: column.text(), serial: column.hex() },
  { sealed: false },
)

const requestTraces = defineTable(
  queueTable.name,
  {
    mount: column.text(),
    serial: column.hex(),
    site: column.text(),
    confirmedBy: column.text().nullable(),
  },
  { sealed: false },
)

/** Sorts after every site. */
const lastSite = '~'

/** A serial number that a site asks other sites to revoke. */
export interface RequestedSerial {
  readonly serial: string
  /** The requesting site; of several the first by name. */
  readonly site: string
  /** The site that has revoked it, if one has. */
  readonly confirmedBy: string | null
}

/**
 * Lists of serial numbers that are revoked, or that sites ask each other to revoke. No statement reads more rows than
 * it returns.
 */
export class RevocationLists {
  readonly #database: Database
  readonly #site: string
  readonly #revoked: Reading<typeof revokedSerials>
  readonly #requests: Reading<typeof requestTraces>

  constructor({ database, site }: { readonly database: Database; readonly site: string }) {
    this.#database = database
    this.#site = site
    this.#revoked = database.unverified(revokedSerials)
    this.#requests = database.unverified(requestTraces)
  }

  /** Serials that this site has revoked, from an index alone. */
  async revoked(mount: string, page: RevocationPage): Promise<string[]> {
    const order = { ...page, by: 'serial', index: 'by_site' } as const
    const rows = await this.#database.read((q) => this.#revoked.list(q, { mount, site: this.#site }, order))
    return rows.map(({ serial }) => serial)
  }

  /** Serials that any site has revoked, and the site whose list names each. */
  unified(mount: string, page: RevocationPage): Promise<readonly { readonly serial: string; readonly site: string }[]> {
    const order = { ...page, by: 'serial', index: 'mount' } as const
    return this.#database.read((q) => this.#revoked.list(q, { mount }, order))
  }

  /** Serials that sites ask each other to revoke, each once. */
  async requests(mount: string, { after, limit }: RevocationPage): Promise<readonly RequestedSerial[]> {
    const cursor = after === undefined ? {} : { after: [after, lastSite] as const }
    const order = { by: ['serial', 'site'], index: 'mount', limit, ...cursor } as const
    const rows = await this.#database.read((q) => this.#requests.list(q, { mount }, order))
    const bySerial = new Map<string, RequestedSerial>()
    for (const { serial, site, confirmedBy } of rows) {
      const known = bySerial.get(serial)
      bySerial.set(serial, { serial, site: known?.site ?? site, confirmedBy: known?.confirmedBy ?? confirmedBy })
    }
    return [...bySerial.values()]
  }
}
