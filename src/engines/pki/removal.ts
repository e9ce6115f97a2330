import type { Claim } from '../../engine.ts'
import type { Materials } from '../../keys/materials/materials.ts'
import type { Mount } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import { authoritiesTable, clustersTable, issuersTable, keysTable } from './authority/tables.ts'
import type { Certificates } from './certificates/certificates.ts'
import type { Roles } from './roles/roles.ts'

const rowsAtOnce = 200

interface RemovalOptions {
  readonly database: Database
  readonly materials: Materials
  readonly roles: Roles
  readonly certificates: Certificates
}

/** What a removed mount held goes a portion at a time: first what there may be a million of. */
export class Removal {
  readonly #options: RemovalOptions

  constructor(options: RemovalOptions) {
    this.#options = options
  }

  /** @returns whether there was anything to remove */
  async removeSome(mount: Mount, claim: Claim): Promise<boolean> {
    const { database, materials, roles, certificates } = this.#options
    if (await certificates.removeSome(mount, claim)) return true
    const { uuid } = mount
    const where = { mount: uuid }
    const some = { limit: rowsAtOnce }
    const steps = [
      (tx: Transaction) => roles.removeSome(tx, mount),
      (tx: Transaction) => materials.removeSome(tx, where, rowsAtOnce),
      (tx: Transaction) => database.table(issuersTable).removeWhere(tx, where, some),
      (tx: Transaction) => database.table(keysTable).removeWhere(tx, where, some),
      (tx: Transaction) => database.table(clustersTable).removeWhere(tx, where, some),
      (tx: Transaction) => database.table(authoritiesTable).removeWhere(tx, where),
    ]
    return database.transaction(async (tx) => {
      await tx.fence(claim.job, claim.fence)
      for (const step of steps) if ((await step(tx)) > 0) return true
      return false
    })
  }
}
