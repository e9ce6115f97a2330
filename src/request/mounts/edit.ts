import type { Transaction } from '../../store/reader.ts'
import type { SetState } from '../../store/sealed/knownset.ts'
import type { SortedList } from '../../store/sortedlist.ts'
import type { New } from '../../store/table.ts'
import type { MountRow, mountsTable } from './mount.ts'

/** A row of another table that belongs to a change. */
type Beside = (tx: Transaction) => Promise<unknown> | undefined

/** One mount: as stored, and as the changes leave it. */
interface Edited {
  readonly stored: MountRow | undefined
  readonly row: MountRow | undefined
  readonly changes: Partial<MountRow>
}

/** A path that another change of the transaction gives up: no order of statements is safe. */
class PathGivenUp extends Error {}

/** Changes of mounts that share a transaction. Each one sees what those before it leave behind; nothing is written yet. */
export class MountEdit {
  readonly #members: SetState<MountRow>['members']
  readonly #edited = new Map<string, Edited>()
  readonly #beside: Beside[] = []
  readonly #givenUp = new Map<string, string>()
  #byPath: SortedList<MountRow>
  #waits = false

  constructor({ members, values }: SetState<MountRow>) {
    this.#members = members
    this.#byPath = values
  }

  get byPath(): SortedList<MountRow> {
    return this.#byPath
  }

  get(id: string): MountRow | undefined {
    const edited = this.#edited.get(id)
    return edited ? edited.row : this.#members.get(id)?.value
  }

  insert(row: New<typeof mountsTable> & { readonly id: string }, beside?: Beside): void {
    const whole = { namespace: '', mount: '', options: null, ...row, rev: 0, epoch: 0 }
    this.#set(row.id, { stored: undefined, row: whole, changes: row }, beside)
  }

  update(row: MountRow, changes: Partial<MountRow>, beside?: Beside): void {
    const { stored, changes: earlier } = this.#editedOf(row)
    this.#set(row.id, { stored, row: { ...row, ...changes }, changes: { ...earlier, ...changes } }, beside)
  }

  remove(row: MountRow, beside: Beside): void {
    this.#set(row.id, { stored: this.#editedOf(row).stored, row: undefined, changes: {} }, beside)
  }

  /** For a change that finds nothing to do: an earlier one may not be known to every worker yet. */
  outlive(): void {
    this.#waits = true
  }

  /** Whether the transaction must wait for all workers. */
  get touches(): boolean {
    return this.#waits || this.#edited.size > 0
  }

  get edited(): readonly Edited[] {
    return [...this.#edited.values()].filter(({ stored, row }) => stored !== undefined || row !== undefined)
  }

  get beside(): readonly Beside[] {
    return this.#beside
  }

  #editedOf(row: MountRow): Edited {
    return this.#edited.get(row.id) ?? { stored: row, row, changes: {} }
  }

  #set(id: string, next: Edited, beside: Beside | undefined): void {
    const before = this.get(id)?.path
    const path = next.row?.path
    if (path !== undefined && path !== before && (this.#givenUp.get(path) ?? id) !== id) throw new PathGivenUp()
    if (before !== undefined && before !== path) this.#givenUp.set(before, id)
    this.#byPath = this.#byPath.changed(before === undefined ? [] : [before], next.row ? [next.row] : [])
    this.#edited.set(id, next)
    if (beside) this.#beside.push(beside)
  }
}
