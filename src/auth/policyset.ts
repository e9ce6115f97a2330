import { hash } from 'node:crypto'
import type { SortedList } from '../store/sortedlist.ts'
import { type Acl, compile, rootAcl } from './acl/compile.ts'
import { type Policy, parsePolicy } from './acl/parse.ts'
import type { memo } from './memo.ts'
import type { PolicyRow } from './policytable.ts'

/** A policy as stored, parsed at its first use. */
export class StoredPolicy {
  readonly row: PolicyRow
  /** Unique to this policy and this text of it. */
  readonly revision: string
  #parsed: Policy | undefined

  constructor(row: PolicyRow) {
    this.row = row
    // After a restore another text may have the same id and rev.
    this.revision = `${row.id} ${row.rev} ${hash('sha256', row.text, 'base64')}`
  }

  get name(): string {
    return this.row.name
  }

  /** Accepted by `parsePolicy` when it was written. */
  get text(): string {
    return this.row.text
  }

  /** A stored text that no longer parses is a server fault: a 500, and grants nothing. */
  get parsed(): Policy {
    try {
      this.#parsed ??= parsePolicy(this.text)
      return this.#parsed
    } catch (error) {
      throw new Error(`stored policy "${this.name}" cannot be read by this version`, { cause: error })
    }
  }
}

/** All policies at one moment. */
export interface PolicySet {
  readonly byName: SortedList<StoredPolicy>
  /** The union of these policies; a name without a policy allows nothing. */
  acl(names: readonly string[]): Acl
}

/** @param compiled combinations by the revisions in them: those of earlier sets stay valid */
export function policySet(byName: SortedList<StoredPolicy>, compiled: ReturnType<typeof memo<Acl>>): PolicySet {
  /** By identity of the list: a cached token presents the same one each time. */
  const byList = new WeakMap<readonly string[], Acl>()

  const combined = (names: readonly string[]): Acl => {
    if (names.length === 1 && names[0] === 'root') return rootAcl
    const some = names.flatMap((name) => byName.get(name) ?? [])
    const key = some.map(({ revision }) => revision).join()
    const known = compiled.get(key)
    if (known !== undefined) return known
    const acl = compile(new Map(some.map(({ name, parsed }) => [name, parsed])))
    compiled.set(key, acl)
    return acl
  }

  return {
    byName,
    acl(names) {
      const known = byList.get(names)
      if (known !== undefined) return known
      const acl = combined(names)
      byList.set(names, acl)
      return acl
    },
  }
}
