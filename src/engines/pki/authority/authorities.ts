import type { Clock } from '../../../clock.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { Changes } from '../../../store/table.ts'
import { type Certificate, readCertificate } from '../../../x509/certificate.ts'
import { Authority } from './authority.ts'
import { Chains } from './chains.ts'
import { areMoved, withShardPoints } from './shardpoints.ts'
import { authoritiesTable, clustersTable, type IssuerRow, issuersTable, keysTable } from './tables.ts'

type MountId = Pick<Mount, 'uuid'>

const mountsHeld = 1000
/** All issuers and keys of a mount are loaded at once, so their number is limited. */
export const mostIssuers = 10_000
/** One import may exceed that by one bundle. */
const rowsRead = 12_000

export interface AuthoritiesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly site: string
}

/** The outcome of a change of an authority: the new settings, and the result for the caller. */
export interface Decided<T> {
  readonly settings?: Changes<typeof authoritiesTable>
  readonly result: T
}

/** The authorities of all mounts, read through a coherent cache. */
export class Authorities {
  readonly site: string
  readonly #database: Database
  readonly #clock: Clock
  readonly #cache: CoherentCache<Authority>
  readonly #chains = new Chains()

  constructor({ database, clock, site }: AuthoritiesOptions) {
    this.site = site
    this.#database = database
    this.#clock = clock
    this.#cache = database.cache({
      table: authoritiesTable.name,
      limit: mountsHeld,
      load: (q, mount) => this.#load(q, mount),
    })
  }

  /** The current authority, never older than the last acknowledged change; synchronous when it is cached. */
  of({ uuid }: MountId): MaybePromise<Authority> {
    const found = this.#cache.get(uuid)
    return found instanceof Promise ? found.then((authority) => present(authority, uuid)) : present(found, uuid)
  }

  /**
   * Changes the authority of a mount: its settings, keys, issuers. Changes of one mount take turns. Once it resolves,
   * no worker uses the old state.
   * @param work reads `before` and writes; it may be run again
   * @returns the authority as this change left it, and whether its shards have other distribution points than before
   */
  change<T>(
    { uuid: mount }: MountId,
    work: (tx: Transaction, before: Authority) => Promise<Decided<T>>,
  ): Promise<{ readonly authority: Authority; readonly result: T; readonly pointsChanged: boolean }> {
    const table = this.#database.table(authoritiesTable)
    return this.#database.transaction(async (tx) => {
      const locked = await table.lock(tx, { mount })
      if (locked === undefined) throw missing(mount)
      const before = present(await this.#load(tx, mount), mount)
      const { settings = {}, result } = await work(tx, before)
      const moved = settings.defaultIssuer !== undefined && settings.defaultIssuer !== locked.defaultIssuer
      const changedAt = moved ? { changedAt: this.#clock.wall() } : {}
      // Always updated: on a cluster, where locks do not reach other nodes, concurrent changes of one mount conflict on
      // this row's rev.
      await table.update(tx, locked, { ...settings, ...changedAt })
      tx.touch(authoritiesTable.name, mount)
      const authority = present(await this.#load(tx, mount), mount)
      const crl = withShardPoints(before, authority, this.site, this.#clock.wall())
      if (crl === undefined) return { authority, result, pointsChanged: areMoved(before, authority) }
      await table.update(tx, authority.settings, { crl })
      return { authority: present(await this.#load(tx, mount), mount), result, pointsChanged: true }
    })
  }

  async #load(q: Reader, mount: string): Promise<Authority | undefined> {
    const { site } = this
    const page = { by: 'id', limit: rowsRead } as const
    const [settings, cluster, issuers, keys] = await Promise.all([
      this.#database.table(authoritiesTable).find(q, { mount }),
      this.#database.table(clustersTable).find(q, { mount, site }),
      this.#database.table(issuersTable).list(q, { mount }, page),
      this.#database.table(keysTable).list(q, { mount }, page),
    ])
    if (settings === undefined) return undefined
    const { path = '', aiaPath = '' } = cluster ?? {}
    const read = issuers.map((row) => ({ row, certificate: certificateOf(row) }))
    const linked = await this.#chains.link(read)
    return new Authority({ settings, cluster: { path, aiaPath }, issuers: linked, keys })
  }
}

const certificates = new WeakMap<IssuerRow, Certificate>()

/** An unchanged row that is read again is the same object: a certificate is parsed, and its key imported, once. */
function certificateOf(row: IssuerRow): Certificate {
  const known = certificates.get(row) ?? readCertificate(row.certificate)
  certificates.set(row, known)
  return known
}

/** Creates the settings of a new mount. @param mount uuid */
export async function createAuthority(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  tx: Transaction,
  mount: string,
): Promise<void> {
  await database.table(authoritiesTable).insert(tx, {
    mount,
    defaultIssuer: '',
    defaultKey: '',
    defaultFollowsLatest: false,
    residence: 'wrapped',
    changedAt: clock.wall(),
  })
}

const missing = (mount: string) =>
  new DamagedRow(authoritiesTable.name, mount, 'the settings of a certificate authority are missing')

function present(authority: Authority | undefined, mount: string): Authority {
  if (authority === undefined) throw missing(mount)
  return authority
}
