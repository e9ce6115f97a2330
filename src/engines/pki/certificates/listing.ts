import { badRequest } from '../../../errors.ts'
import type { Database } from '../../../store/database.ts'
import type { Reading } from '../../../store/sealed/access.ts'
import { atMost } from '../../../store/table.ts'
import { type CertificateRow, certificateTable, serialTable } from './tables.ts'

/** One page of a listing. */
export interface CertificatePage {
  /** A serial in hexadecimal; the page begins after it. */
  readonly after?: string
  readonly limit: number
}

/** With a filter, certificates are ordered by expiry, the first to expire first. */
export interface CertificateFilter {
  /** The uuid of an issuer. */
  readonly issuer?: string
  /** Milliseconds: certificates that expire before then. */
  readonly expiresBefore?: number
}

const bySite = { by: 'serial', index: 'by_site' } as const

/** Lists of the certificates of a site. No statement reads more rows than it returns. */
export class CertificateLists {
  readonly #database: Database
  readonly #site: string
  readonly #rows: Reading<typeof certificateTable>
  readonly #serials: Reading<typeof serialTable>

  constructor({ database, site }: { readonly database: Database; readonly site: string }) {
    this.#database = database
    this.#site = site
    this.#rows = database.table(certificateTable)
    this.#serials = database.table(serialTable)
  }

  /** Serials of a mount in their order, from an index alone. */
  async list(mount: string, { after, limit }: CertificatePage): Promise<string[]> {
    const page = { ...bySite, limit, ...(after === undefined ? {} : { after }) } as const
    const rows = await this.#database.read((q) => this.#serials.list(q, { mount, site: this.#site }, page))
    return rows.map(({ serial }) => serial)
  }

  /**
   * Certificates of a mount, in the order of their serials, or of their expiry when filtered.
   * @throws ApiError 400 when a filtered list is continued after a serial that is not stored
   */
  detailed(mount: string, page: CertificatePage, filter: CertificateFilter = {}): Promise<CertificateRow[]> {
    const { issuer, expiresBefore } = filter
    if (issuer !== undefined || expiresBefore !== undefined) return this.#filtered(mount, page, filter)
    const { after, limit } = page
    const order = { ...bySite, limit, ...(after === undefined ? {} : { after }) } as const
    return this.#database.read((q) => this.#rows.list(q, { mount, site: this.#site }, order))
  }

  async #filtered(
    mount: string,
    { after, limit }: CertificatePage,
    { issuer, expiresBefore }: CertificateFilter,
  ): Promise<CertificateRow[]> {
    const where = {
      ...{ mount, site: this.#site },
      ...(issuer === undefined ? {} : { issuer }),
      ...(expiresBefore === undefined ? {} : { notAfter: atMost(expiresBefore - 1) }),
    }
    return this.#database.read(async (q) => {
      const last = after === undefined ? undefined : await this.#rows.find(q, { mount, serial: after })
      if (after !== undefined && last === undefined)
        throw badRequest('after: a filtered list can only be continued after the serial number of a stored certificate')
      const cursor = last === undefined ? {} : { after: [last.notAfter, last.serial] as const }
      return this.#rows.list(q, where, {
        by: ['notAfter', 'serial'],
        index: issuer === undefined ? 'by_expiry' : 'by_issuer',
        limit,
        ...cursor,
      })
    })
  }
}
