import type { Claim } from '../../job.ts'
import type { Materials } from '../../keys/materials/materials.ts'
import type { Mount } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import { column, defineTable } from '../../store/table.ts'
import { authoritiesTable, clustersTable, issuersTable, keysTable } from './authority/tables.ts'
import type { Certificates } from './certificates/certificates.ts'
import { revocationTable } from './certificates/tables.ts'
import { crlsTable } from './crl/tables.ts'
import type { LedgerName } from './revocation/ledgers.ts'
import { queueTable } from './revocation/tables.ts'
import type { Roles } from './roles/roles.ts'
import type { TidiedLists } from './tidy/deps.ts'
import { tidiesTable } from './tidy/tables.ts'

const rowsAtOnce = 200
/** Finds the list that a revocation belongs to, unverified. */
const revocationTraces = defineTable(
  'pki_revocations',
  {
    id: column.text(),
    mount: column.text(),
    serial: column.hex(),
    site: column.text(),
    crlIssuer: column.hex().nullable(),
  },
  { sealed: false },
)
/** Finds the CRL issuers of a mount's lists, unverified. */
const listTraces = defineTable('pki_crls', { mount: column.text(), crlIssuer: column.hex() }, { sealed: false })

interface RemovalOptions {
  readonly database: Database
  readonly materials: Pick<Materials, 'removeSome'>
  readonly roles: Pick<Roles, 'removeSome'>
  readonly certificates: Pick<Certificates, 'removeSome'>
  readonly lists: Pick<TidiedLists, 'absorb' | 'withdraw'>
}

/**
 * Removes the contents of a removed mount, a portion at a time: first the tables that can have a million rows. Numbers,
 * ledgers and segments of its revocation lists stay: they belong to the name and key of an issuer, which may be
 * imported again.
 */
export class Removal {
  readonly #options: RemovalOptions

  constructor(options: RemovalOptions) {
    this.#options = options
  }

  /** @returns whether there was anything to remove */
  async removeSome(mount: Mount, claim: Claim): Promise<boolean> {
    const { database, materials, roles, certificates } = this.#options
    if (await this.#removeRevocations(mount, claim)) return true
    if (await certificates.removeSome(mount, claim)) return true
    if (await this.#withdrawSome(mount, claim)) return true
    const { uuid } = mount
    const where = { mount: uuid }
    const some = { limit: rowsAtOnce }
    const steps = [
      (tx: Transaction) => roles.removeSome(tx, mount),
      (tx: Transaction) => database.table(queueTable).removeWhere(tx, where, some),
      (tx: Transaction) => materials.removeSome(tx, where, rowsAtOnce),
      (tx: Transaction) => database.table(issuersTable).removeWhere(tx, where, some),
      (tx: Transaction) => database.table(keysTable).removeWhere(tx, where, some),
      (tx: Transaction) => database.table(clustersTable).removeWhere(tx, where, some),
      (tx: Transaction) => database.table(authoritiesTable).removeWhere(tx, where),
      // Last: once the settings are gone, no run begins.
      (tx: Transaction) => database.table(tidiesTable).removeWhere(tx, where),
    ]
    return database.transaction(async (tx) => {
      await tx.fence(claim.job, claim.fence)
      for (const step of steps) if ((await step(tx)) > 0) return true
      return false
    })
  }

  /** Their list entries outlive the mount: those not yet in a segment are put into one first. */
  async #removeRevocations({ uuid: mount }: Mount, { job, fence }: Claim): Promise<boolean> {
    const { database, lists } = this.#options
    const page = { by: 'serial', limit: rowsAtOnce } as const
    const found = await database.read((q) => database.unverified(revocationTraces).list(q, { mount }, page))
    const ledgers = new Map<string, LedgerName>()
    for (const { crlIssuer, site } of found) {
      if (crlIssuer !== null) ledgers.set(`${crlIssuer} ${site}`, { crlIssuer, site })
    }
    for (const ledger of ledgers.values()) await lists.absorb(ledger)
    if (found.length === 0) return false
    await database.transaction(async (tx) => {
      await tx.fence(job, fence)
      const ids = found.map(({ id }) => id)
      await database.table(revocationTable).removeAll(tx, ids)
    })
    return true
  }

  /**
   * A list that is recorded as published but missing counts as damaged, so the record is withdrawn before the lists of
   * a CRL issuer are removed.
   */
  async #withdrawSome({ uuid: mount }: Mount, { job, fence }: Claim): Promise<boolean> {
    const { database, lists } = this.#options
    const page = { by: 'crlIssuer', limit: 1 } as const
    const [found] = await database.read((q) => database.unverified(listTraces).list(q, { mount }, page))
    if (found === undefined) return false
    const { crlIssuer } = found
    await lists.withdraw(mount, crlIssuer)
    const some = { limit: rowsAtOnce }
    await database.transaction(async (tx) => {
      await tx.fence(job, fence)
      await database.table(crlsTable).removeWhere(tx, { mount, crlIssuer }, some)
    })
    return true
  }
}
