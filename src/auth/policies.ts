import { after } from '../after.ts'
import type { Clock } from '../clock.ts'
import { badRequest } from '../errors.ts'
import type { MaybePromise } from '../route.ts'
import type { CoherentCache } from '../store/coherence/cache.ts'
import type { Database } from '../store/database.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import type { SealedAccess } from '../store/sealed/access.ts'
import type { Head } from '../store/sealed/heads.ts'
import { column, defineTable, type Row } from '../store/table.ts'
import { type Acl, rootAcl } from './acl/compile.ts'
import { defaultPolicyText } from './acl/default.ts'
import { parsePolicy } from './acl/parse.ts'
import { type PolicySet, policySet } from './policyset.ts'

export const policyTable = defineTable(
  'policies',
  { name: column.text(), text: column.text(), createdAt: column.integer(), updatedAt: column.integer() },
  { sealed: true },
)

/** The cache holds one entry: all policies. They are one set with one head, since dropping one can widen rights. */
const cacheEntry = 'set'
const pageSize = 500
const maxTextLength = 512 * 1024

/**
 * Writes the head and the default policy of a new installation.
 * @param now milliseconds
 */
export async function createPolicies(database: Database, tx: Transaction, now: number): Promise<void> {
  const row = { name: 'default', text: defaultPolicyText, createdAt: now, updatedAt: now }
  const head = database.head('policies')
  await head.create(tx)
  await head.advance(tx, [await database.table(policyTable).insert(tx, row)])
}

/** The ACL policies: sealed rows under one head, and their compiled form. Names are lower case. */
export class Policies {
  readonly #database: Database
  readonly #clock: Clock
  readonly #table: SealedAccess<typeof policyTable>
  readonly #head: Head
  readonly #cache: CoherentCache<PolicySet>
  #latest: { readonly revisions: string; readonly set: PolicySet } | undefined

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database
    this.#clock = clock
    this.#table = database.table(policyTable)
    this.#head = database.head('policies')
    this.#cache = database.cache({
      table: policyTable.name,
      limit: 1,
      load: async (q) => this.#compiled(await this.#all(q)),
    })
  }

  /**
   * The union of these policies. Rejects with DamagedRow when any policy row was edited, removed, added or restored outside
   * this server: no policy is trusted then, and only root tokens go on.
   */
  acl(names: readonly string[]): MaybePromise<Acl> {
    if (names.length === 1 && names[0] === 'root') return rootAcl
    return after(this.#set(), (set) => set.acl(names))
  }

  /** A policy's name and text; undefined when there is none. `root` has an empty text. */
  async read(name: string): Promise<{ name: string; text: string } | undefined> {
    const lower = policyName(name)
    const text = lower === 'root' ? '' : (await this.#set()).texts.get(lower)
    return text === undefined ? undefined : { name: lower, text }
  }

  /** All names, sorted, with `root`. */
  async names(): Promise<string[]> {
    return [...(await this.#set()).texts.keys(), 'root'].sort()
  }

  /** Those of these names that have no policy; tokens may carry such names. */
  async unknown(names: readonly string[]): Promise<string[]> {
    const { texts } = await this.#set()
    return names.filter((name) => name !== 'root' && !texts.has(name))
  }

  /**
   * Creates or replaces a policy; effective on every worker before it resolves.
   * @param source HCL or JSON, plain or in base64
   * @returns the name under which it is stored
   * @throws ApiError 400 for `root`, and for a text that does not parse
   */
  async write(name: string, source: string | undefined): Promise<string> {
    const lower = policyName(name)
    if (lower === 'root') throw badRequest('cannot update "root" policy')
    const text = policyText(source)
    await this.#change(async (tx, rows) => {
      const old = rows.find((row) => row.name === lower)
      const now = this.#clock.wall()
      const row = old
        ? await this.#table.update(tx, old, { text, updatedAt: now })
        : await this.#table.insert(tx, { name: lower, text, createdAt: now, updatedAt: now })
      return [...rows.filter((other) => other !== old), row]
    })
    return lower
  }

  /**
   * Removes a policy; an unknown one is no error.
   * @throws ApiError 400 for `root` and `default`
   */
  async remove(name: string): Promise<void> {
    const lower = policyName(name)
    if (lower === 'root') throw badRequest('cannot delete "root" policy')
    if (lower === 'default') throw badRequest('cannot delete default policy')
    if (!(await this.#set()).texts.has(lower)) return
    await this.#change(async (tx, rows) => {
      const old = rows.find((row) => row.name === lower)
      if (old) await this.#table.remove(tx, old)
      return rows.filter((other) => other !== old)
    })
  }

  #set(): MaybePromise<PolicySet> {
    return after(this.#cache.get(cacheEntry), required)
  }

  /** The set of these revisions. Other writes in the cache's bucket cause a reload, which must not cause a recompilation. */
  #compiled(rows: readonly PolicyRow[]): PolicySet {
    const revisions = rows.map(({ id, rev }) => `${id} ${rev}`).join()
    if (this.#latest?.revisions === revisions) return this.#latest.set
    const set = policySet(new Map(rows.map(({ name, text }) => [name, text])))
    this.#latest = { revisions, set }
    return set
  }

  async #change(work: (tx: Transaction, rows: readonly PolicyRow[]) => Promise<readonly PolicyRow[]>): Promise<void> {
    await this.#database.transaction(async (tx) => {
      await this.#head.advance(tx, await work(tx, await this.#all(tx)))
      tx.touch(policyTable.name, cacheEntry)
    })
  }

  async #all(q: Reader): Promise<PolicyRow[]> {
    const rows: PolicyRow[] = []
    for (let page: PolicyRow[] | undefined; page === undefined || page.length === pageSize; rows.push(...page)) {
      const after = page?.at(-1)?.id
      page = await this.#table.list(q, {}, { by: 'id', limit: pageSize, ...(after === undefined ? {} : { after }) })
    }
    await this.#head.verify(q, rows)
    return rows
  }
}

type PolicyRow = Row<typeof policyTable>

function required(set: PolicySet | undefined): PolicySet {
  if (set === undefined) throw new Error('the set of policies always exists')
  return set
}

/**
 * The stored form of a policy's name: lower case, without surrounding blanks.
 * @throws ApiError 400 for an empty or overlong name, and for control characters, which a listing could not show
 */
export function policyName(text: string): string {
  const name = text.trim().toLowerCase()
  if (name === '' || name.length > 255 || /[\p{Cc}\p{Cs}]/u.test(name))
    throw badRequest('policy name must be 1 to 255 characters without control characters')
  return name
}

function policyText(source: string | undefined): string {
  if (source === undefined || source.trim() === '') throw badRequest("'policy' parameter not supplied or empty")
  const text = decoded(source)
  if (!text.isWellFormed()) throw badRequest('policy is not valid Unicode')
  if (text.length > maxTextLength) throw badRequest(`policy is longer than ${maxTextLength} characters`)
  parsePolicy(text)
  return text
}

/** The source, decoded if it is base64. A policy is never valid base64 itself: it has quotes and braces. */
function decoded(source: string): string {
  const bare = source.replace(/[\r\n]/g, '')
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(bare)) return source
  return Buffer.from(bare, 'base64').toString('utf8')
}
