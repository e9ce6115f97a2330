import { badRequest } from '../../../errors.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import { markWritten } from '../../../settings/written.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import { authoritiesTable } from '../authority/tables.ts'
import { initialSettings, type RoleSettings } from './fields.ts'
import { createRole, type Role } from './role.ts'
import { roleNames, rolesTable } from './table.ts'

const rolesHeld = 10_000
const rolesAtOnce = 500
const longestName = 512

type MountId = Pick<Mount, 'uuid'>

const cacheId = (mount: string, name: string): string => `${mount}/${name}`

/** The roles of every PKI mount, read through a coherent cache. */
export class Roles {
  readonly #database: Database
  readonly #cache: CoherentCache<Role>

  constructor(database: Database) {
    this.#database = database
    this.#cache = database.cache({
      table: rolesTable.name,
      limit: rolesHeld,
      load: async (q, id) => {
        const [mount = '', name = ''] = id.split('/')
        const row = await database.table(rolesTable).find(q, { mount, name })
        return row && createRole(name, row.settings)
      },
    })
  }

  /** The current role, never older than the last acknowledged write; synchronous when it is cached. */
  get({ uuid }: MountId, name: string): MaybePromise<Role | undefined> {
    return this.#cache.get(cacheId(uuid, name))
  }

  /**
   * Creates or replaces a role; when it resolves, every worker uses the new one. Creating a role waits like changing
   * one, since a role with that name may have been deleted.
   * @param settings gets the existing settings, and may throw to change nothing
   * @throws ApiError 400 for a name that is too long
   */
  async write(
    { uuid: mount }: MountId,
    name: string,
    settings: (before: RoleSettings | undefined) => RoleSettings,
  ): Promise<Role> {
    if (name.length > longestName) throw badRequest(`role names may have at most ${longestName} characters`)
    const rows = this.#database.table(rolesTable)
    return this.#database.transaction(async (tx) => {
      const row = await rows.lock(tx, { mount, name })
      const wanted = settings(row && { ...initialSettings, ...row.settings })
      tx.touch(rolesTable.name, cacheId(mount, name))
      if (row === undefined) await rows.insert(tx, { mount, name, settings: wanted })
      else await rows.update(tx, row, { settings: wanted })
      return createRole(name, wanted)
    })
  }

  /** When it resolves, no worker uses the role. A missing role is not an error. */
  async remove({ uuid: mount }: MountId, name: string): Promise<void> {
    const rows = this.#database.table(rolesTable)
    await this.#database.transaction(async (tx) => {
      tx.touch(rolesTable.name, cacheId(mount, name))
      const removed = await rows.removeWhere(tx, { mount, name })
      if (removed > 0) await markWritten(this.#database, tx, authoritiesTable, mount)
    })
  }

  /** At most `limit` names after `after`, in order. */
  async names({ uuid: mount }: MountId, after: string, limit: number): Promise<string[]> {
    const names = this.#database.unverified(roleNames)
    const rows = await this.#database.read((q) => names.list(q, { mount }, { by: 'name', after, limit }))
    return rows.map(({ name }) => name)
  }

  /** Whether the mount has no role. */
  async empty(mount: MountId): Promise<boolean> {
    return (await this.names(mount, '', 1)).length === 0
  }

  /**
   * Removes roles of a removed mount. No cache is touched, since no request reaches the mount.
   * @returns the number removed
   */
  removeSome(tx: Transaction, { uuid: mount }: MountId): Promise<number> {
    return this.#database.table(rolesTable).removeWhere(tx, { mount }, { limit: rolesAtOnce })
  }
}
