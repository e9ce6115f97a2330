import { after } from '../after.ts'
import type { Clock } from '../clock.ts'
import { badRequest } from '../errors.ts'
import type { MaybePromise } from '../route.ts'
import type { CoherentCache } from '../store/coherence/cache.ts'
import type { Database } from '../store/database.ts'
import { Outdated } from '../store/faults.ts'
import { Batch, oneByOne } from '../store/group.ts'
import { pages } from '../store/pages.ts'
import type { Reader, Transaction } from '../store/reader.ts'
import type { Reading, SealedAccess } from '../store/sealed/access.ts'
import type { Head } from '../store/sealed/heads.ts'
import { KnownSet, type SetState } from '../store/sealed/knownset.ts'
import { type Acl, rootAcl } from './acl/compile.ts'
import { defaultPolicyText } from './acl/default.ts'
import { type Policy, parsePolicy } from './acl/parse.ts'
import { foldName } from './fold.ts'
import { memo } from './memo.ts'
import { type PolicySet, policySet, StoredPolicy } from './policyset.ts'
import { type PolicyRow, policyNames, policyTable } from './policytable.ts'

/** The cache holds one entry: all policies. They are one set with one head, since losing one can widen rights. */
const cacheEntry = 'set'
const pageSize = 500
/** Compiled combinations kept; an evicted one is compiled again. */
const keptCombinations = 128
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
  readonly #names: Reading<typeof policyNames>
  readonly #head: Head
  readonly #cache: CoherentCache<KnownPolicies>
  /** Writers that arrive while others commit share the next transaction: each one advances the head of the set. */
  readonly #changes = new Batch<PolicyChange, undefined>((changes) => this.#commit(changes), oneByOne)
  readonly #known: KnownSet<typeof policyTable, StoredPolicy>
  readonly #compiled = memo<Acl>(keptCombinations)

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database
    this.#clock = clock
    this.#table = database.table(policyTable)
    this.#names = database.unverified(policyNames)
    this.#head = database.head('policies')
    this.#known = new KnownSet({
      name: policyTable.name,
      table: this.#table,
      head: this.#head,
      keep: (row) => new StoredPolicy(row),
      keyOf: ({ name }) => name,
      clock,
    })
    this.#cache = database.cache({
      table: policyTable.name,
      limit: 1,
      load: (q) => this.#load(q),
    })
  }

  /**
   * The union of these policies. Rejects with DamagedRow when any policy row was edited, removed, added or restored
   * outside this server: then no policy is trusted, and only root tokens can be used.
   */
  acl(names: readonly string[]): MaybePromise<Acl> {
    if (names.length === 1 && names[0] === 'root') return rootAcl
    return after(this.#set(), (set) => set.acl(names))
  }

  /** A policy's name and text; undefined when it does not exist. `root` has an empty text. */
  async read(name: string): Promise<{ name: string; text: string } | undefined> {
    const lower = policyName(name)
    const text = lower === 'root' ? '' : (await this.#set()).byName.get(lower)?.text
    return text === undefined ? undefined : { name: lower, text }
  }

  /** All names, sorted, with `root`. */
  async names(): Promise<string[]> {
    const names = new Set(['root'])
    const order = { by: 'name', limit: pageSize } as const
    for await (const page of pages(this.#database, this.#names, { namespace: '' }, order)) {
      for (const { name } of page) names.add(name)
    }
    return [...names].sort()
  }

  /** The names among these that have no policy; tokens may carry such names. */
  async unknown(names: readonly string[]): Promise<string[]> {
    const { byName } = await this.#set()
    return names.filter((name) => name !== 'root' && byName.get(name) === undefined)
  }

  /**
   * Creates or replaces a policy; effective on every worker before it resolves.
   * @param source HCL or JSON, plain or in base64
   * @returns its stored name, and its parsed contents
   * @throws ApiError 400 for `root`, and for a text that does not parse
   */
  async write(name: string, source: string | undefined): Promise<Policy & { readonly name: string }> {
    const lower = policyName(name)
    if (lower === 'root') throw badRequest('cannot update "root" policy')
    const { text, policy } = policyText(source)
    await this.#changes.add({ name: lower, text })
    return { name: lower, ...policy }
  }

  /**
   * Removes a policy; an unknown one is not an error.
   * @throws ApiError 400 for `root` and `default`
   */
  async remove(name: string): Promise<void> {
    const lower = policyName(name)
    if (lower === 'root') throw badRequest('cannot delete "root" policy')
    if (lower === 'default') throw badRequest('cannot delete default policy')
    // One that this worker does not know, too: its removal may not be known to every worker yet.
    await this.#changes.add({ name: lower, text: undefined })
  }

  async #load(q: Reader): Promise<KnownPolicies> {
    return this.#compile(await this.#known.read(q))
  }

  #compile(state: SetState<StoredPolicy>): KnownPolicies {
    return { state, set: policySet(state.values, this.#compiled) }
  }

  /** Makes changes in their order, of each policy the last one, and advances the head with them. */
  async #commit(changes: readonly PolicyChange[]): Promise<undefined[]> {
    const texts = new Map(changes.map(({ name, text }) => [name, text]))
    await this.#database.assuming({
      name: policyTable.name,
      blind: this.#cache.peek(cacheEntry) && (async (tx) => this.#change(tx, this.#assume(tx, texts), texts)),
      reading: async (tx) => this.#change(tx, await this.#lock(tx, texts), texts),
    })
    return changes.map(() => undefined)
  }

  /** What the cache has. */
  #assume(tx: Transaction, texts: PolicyTexts): Found {
    const known = this.#cache.assume(tx, cacheEntry)
    if (known === undefined) throw new Outdated()
    const { state } = known
    const rows = rowsOf(state, texts)
    this.#known.assume(tx, state, rows)
    return { state, rows }
  }

  /** What there is now; meanwhile other writers of the set wait. */
  #lock(tx: Transaction, texts: PolicyTexts): Promise<Found> {
    return this.#known.readToChange(tx, (state) => rowsOf(state, texts))
  }

  async #change(tx: Transaction, { state, rows }: Found, texts: PolicyTexts): Promise<void> {
    const old = new Map(rows.map((row) => [row.name, row]))
    const written: PolicyRow[] = []
    for (const [name, text] of texts) written.push(...(await this.#replace(tx, name, { text, row: old.get(name) })))
    const gone = rows.filter(({ name }) => texts.get(name) === undefined)
    const left = await this.#known.advance(tx, state, { gone: gone.map(({ id }) => id), rows: written })
    tx.touch(policyTable.name, cacheEntry)
    this.#cache.put(tx, cacheEntry, this.#compile(left))
  }

  /** @returns the new row, or none when the policy was removed */
  async #replace(tx: Transaction, name: string, { text, row }: Replacement): Promise<PolicyRow[]> {
    const now = this.#clock.wall()
    if (text !== undefined && row) return [await this.#table.update(tx, row, { text, updatedAt: now })]
    if (text !== undefined) return [await this.#table.insert(tx, { name, text, createdAt: now, updatedAt: now })]
    if (row) await this.#table.remove(tx, row)
    return []
  }

  #set(): MaybePromise<PolicySet> {
    return after(this.#cache.get(cacheEntry), required)
  }
}

/** The policies, and the verified set that they are. */
interface KnownPolicies {
  readonly set: PolicySet
  readonly state: SetState<StoredPolicy>
}

/** The set, and the rows of the policies that are to be changed. */
interface Found {
  readonly state: SetState<StoredPolicy>
  readonly rows: readonly PolicyRow[]
}

/** The new texts by name; undefined removes a policy. */
type PolicyTexts = ReadonlyMap<string, string | undefined>

interface PolicyChange {
  readonly name: string
  /** Undefined removes it. */
  readonly text: string | undefined
}

interface Replacement {
  /** Undefined removes it. */
  readonly text: string | undefined
  /** As it is before. */
  readonly row: PolicyRow | undefined
}

const rowsOf = ({ values }: SetState<StoredPolicy>, texts: PolicyTexts): PolicyRow[] =>
  [...texts.keys()].flatMap((name) => values.get(name)?.row ?? [])

function required(known: KnownPolicies | undefined): PolicySet {
  if (known === undefined) throw new Error('the set of policies always exists')
  return known.set
}

/**
 * The stored form of a policy's name: lower case, without surrounding blanks.
 * @throws ApiError 400 for an empty or overlong name, and for control characters, which a listing could not show
 */
export function policyName(text: string): string {
  const name = foldName(text)
  if (name === '' || name.length > 255 || /[\p{Cc}\p{Cs}]/u.test(name))
    throw badRequest('policy name must be 1 to 255 characters without control characters')
  if (name.split('/').some((segment) => segment === '' || segment === '.' || segment === '..'))
    throw badRequest('policy name must not have an empty, "." or ".." segment, which a path cannot contain')
  return name
}

function policyText(source: string | undefined): { readonly text: string; readonly policy: Policy } {
  if (source === undefined || source.trim() === '') throw badRequest("'policy' parameter not supplied or empty")
  const text = decoded(source)
  if (!text.isWellFormed()) throw badRequest('policy is not valid Unicode')
  if (text.length > maxTextLength) throw badRequest(`policy is longer than ${maxTextLength} characters`)
  return { text, policy: parsePolicy(text) }
}

/** The source, decoded if it is base64. A policy is never valid base64 itself: it has quotes and braces. */
function decoded(source: string): string {
  const bare = source.replace(/[\r\n]/g, '')
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(bare)) return source
  return Buffer.from(bare, 'base64').toString('utf8')
}
