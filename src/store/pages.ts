import { rest } from '../after.ts'
import type { Clock } from '../clock.ts'
import type { Claim } from '../job.ts'
import type { Database } from './database.ts'
import type { Reader } from './reader.ts'
import type { Page, Reading } from './sealed/access.ts'
import type { Row, Table, Where } from './table.ts'

type Cursor<T extends Table> = NonNullable<Page<T>['after']>

/** Where pages are read: each by a read of its own, or all `within` a transaction. */
type Reads = Pick<Database, 'read'>

/** Reads in a transaction that holds locks: another connection might have to wait for those that wait for it. */
export const within = (q: Reader): Reads => ({ read: (work) => work(q) })

/**
 * All rows that match, in pages of `limit` ordered by `by`: between reads of their own rows may come and go. It ends at
 * an empty page: rows may have come since a short one was read.
 */
export async function* pages<T extends Table>(
  database: Reads,
  rows: Reading<T>,
  where: Where<T>,
  { after, ...page }: Page<T>,
): AsyncGenerator<Row<T>[], void> {
  for (let cursor = after; ; ) {
    const at = cursor === undefined ? page : { ...page, after: cursor }
    const found = await database.read((q) => rows.list(q, where, at))
    const last = found.at(-1)
    if (last === undefined) return
    yield found
    cursor = cursorOf(last, page.by)
  }
}

const cursorOf = <T extends Table>(row: Row<T>, by: Page<T>['by']): Cursor<T> => {
  const keys = [by].flat().map((property) => (row as Readonly<Record<string, unknown>>)[property])
  return (keys.length === 1 ? keys[0] : keys) as Cursor<T>
}

/** The walk of a job through a large table in the order of ids. */
interface Walk {
  readonly claim: Claim
  readonly limit: number
  readonly signal: AbortSignal
  readonly clock: Clock
}

/**
 * All rows in the order of their ids, page by page, paced, starting from the place where an earlier run of the job was
 * interrupted. The job's place is stored after each page.
 */
export async function* walk<T extends Table>(
  database: Database,
  rows: Reading<T>,
  { claim: { job, fence }, limit, signal, clock }: Walk,
): AsyncGenerator<Row<T>[], void> {
  const store = (place: string) => database.transaction((tx) => tx.fence(job, fence, place))
  const by = 'id' as keyof Row<T> & string
  const after = await database.jobPlace(job)
  for await (const page of pages(database, rows, {}, { by, limit, ...(after === '' ? {} : { after }) })) {
    const began = clock.monotonic()
    yield page
    await store(String(page.at(-1)?.[by]))
    await rest(clock, began)
    if (signal.aborted) return
  }
  await store('')
}
