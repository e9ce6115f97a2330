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
const SET = 'set'
const PAGE = 500
const MAX_TEXT_LENGTH = 512 * 1024

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

/** The ACL policies: sealed rows under one head, and what they compile to. Names are lower case. */
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
   * What these policies allow together. Rejects with DamagedRow when any policy row was edited, removed, added or put
   * back behind our back: no policy is trusted then, and only root tokens go on.
   */
  acl(names: readonly string[]): MaybePromise<Acl> {
    if (names.length === 1 && names[0] === 'root') return rootAcl
    return after(this.#set(), (set) => set.acl(names))
  }

  /** A policy's text, or undefined. `root` reads as an empty one. */
  async read(name: string): Promise<{ name: string; text: string } | undefined> {
    const lower = policyName(name)
    const text = lower === 'root' ? '' : (await this.#set()).texts.get(lower)
    return text === undefined ? undefined : { name: lower, text }
  }

  /** All names, sorted, with `root`. */
  async names(): Promise<string[]> {
    return [...(await this.#set()).texts.keys(), 'root'].sort()
  }

  /** Which of these names are no policies; tokens may carry such names. */
  async unknown(names: readonly string[]): Promise<string[]> {
    const { texts } = await this.#set()
    return names.filter((name) => name !== 'root' && !texts.has(name))
  }

  /**
   * Creates or replaces a policy; effective on every worker before it resolves.
   * @param given HCL or JSON, or the base64 of it
   * @returns the name under which it is stored
   * @throws ApiError 400 for `root`, and for what the language does not allow
   */
  async write(name: string, given: string | undefined): Promise<string> {
    const lower = policyName(name)
    if (lower === 'root') throw badRequest('cannot update "root" policy')
    const text = policyText(given)
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
   * Removes a policy; absent is done already.
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
    return after(this.#cache.get(SET), present)
  }

  /** The set of these revisions. Other writes in the cache's bucket make it be read anew: it is not compiled anew for that. */
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
      tx.touch(policyTable.name, SET)
    })
  }

  async #all(q: Reader): Promise<PolicyRow[]> {
    const rows: PolicyRow[] = []
    for (let page: PolicyRow[] | undefined; page === undefined || page.length === PAGE; rows.push(...page)) {
      const after = page?.at(-1)?.id
      page = await this.#table.list(q, {}, { by: 'id', limit: PAGE, ...(after === undefined ? {} : { after }) })
    }
    await this.#head.verify(q, rows)
    return rows
  }
}

type PolicyRow = Row<typeof policyTable>

function present(set: PolicySet | undefined): PolicySet {
  if (set === undefined) throw new Error('the set of policies always exists')
  return set
}

/**
 * How a policy is called: lower case, without surrounding blanks.
 * @throws ApiError 400 when nothing remains, or a control character could not be told apart in a list
 */
export function policyName(given: string): string {
  const name = given.trim().toLowerCase()
  if (name === '' || name.length > 255 || /[\p{Cc}\p{Cs}]/u.test(name))
    throw badRequest('policy name must be 1 to 255 characters without control characters')
  return name
}

function policyText(given: string | undefined): string {
  if (given === undefined || given.trim() === '') throw badRequest("'policy' parameter not supplied or empty")
  const text = unwrapped(given)
  if (!text.isWellFormed()) throw badRequest('policy is not valid Unicode')
  if (text.length > MAX_TEXT_LENGTH) throw badRequest(`policy is longer than ${MAX_TEXT_LENGTH} characters`)
  parsePolicy(text)
  return text
}

/** The text of a policy sent as base64. No policy that allows anything is valid base64: it has quotes and braces. */
function unwrapped(given: string): string {
  const bare = given.replace(/[\r\n]/g, '')
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(bare)) return given
  return Buffer.from(bare, 'base64').toString('utf8')
}
