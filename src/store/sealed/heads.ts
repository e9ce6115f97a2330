import { createHash, type Hash } from 'node:crypto'
import type { MaybePromise } from '../../route.ts'
import type { Reader, Transaction } from '../reader.ts'
import { SortedList } from '../sortedlist.ts'
import { column, defineTable, type Row } from '../table.ts'
import type { Member } from './access.ts'
import type { Seal } from './seal.ts'
import { sealedAccess } from './sealed.ts'
import { trailAfter } from './trail.ts'

/**
 * The sealed head of a set whose shrinking would widen rights: the number of members, and the ids and revisions of
 * their rows. It is made with the set (`create`); its absence later is damage, never an empty set.
 */
export interface Head {
  /** Begins the set, without members. */
  create(tx: Transaction): Promise<void>
  /**
   * Makes other transactions that change the set wait until this one ends. Must be its first read: members read
   * afterwards, even without awaiting the lock, are then as new as the head.
   */
  lock(tx: Transaction): Promise<void>
  /**
   * Throws DamagedRow unless the head lists exactly these members. `q` must be consistent and the same that read them;
   * if `members` is still pending, the head is read together with them.
   * @returns the members
   */
  verify<M extends Member>(q: Reader, members: MaybePromise<readonly M[]>): Promise<readonly M[]>
  /** The head, for `lists` and for a later transaction to assume. Throws DamagedRow when it is missing. */
  read(q: Reader): Promise<HeadRow>
  /** Throws DamagedRow unless the head, read together with these members, lists exactly them. */
  require(head: HeadRow, members: Members): void
  /** Assumes, unread, that this is still the head (`SealedAccess.assume`). */
  assume(tx: Transaction, head: HeadRow): void
  /** As verify. @returns the number of the set's last change; it only grows */
  sequence(q: Reader, members: readonly Member[]): Promise<number>
  /**
   * Writes the new state of the set: all members, not the difference. Verify the old members in the same transaction
   * first, or assume the head that listed them. A list that came out of the one before it (`changed`) costs little.
   * @param changed ids of the members that differ, for a set that keeps a trail
   */
  advance(tx: Transaction, members: Members, changed?: readonly string[]): Promise<HeadRow>
  /** Ends the set. */
  remove(tx: Transaction): Promise<void>
}

/** The table of all heads. */
export const headsTable = defineTable(
  'heads',
  {
    set: column.text(),
    count: column.integer(),
    digest: column.bytes(),
    seq: column.integer(),
    /** As `trailAfter` makes it; NULL where nobody asks what has changed. */
    trail: column.text().nullable(),
  },
  { sealed: true },
)

export type HeadRow = Row<typeof headsTable>

/** Whether the head lists exactly these members. */
export function lists({ count, digest }: HeadRow, members: Members): boolean {
  const list = listOf(members)
  return count === list.size && digest.equals(digestOf(list))
}

/** Members in the order of their ids. */
type MemberList = Pick<SortedList<Member>, 'size' | 'chunks'>
/** Those in no order are put into one. */
type Members = readonly Member[] | MemberList

const listOf = (members: Members): MemberList => ('chunks' in members ? members : memberList(members))

export const memberList = <M extends Member>(members: readonly M[]): SortedList<M> =>
  SortedList.of(({ id }) => id, members)

/** SHA-256 over the members in the order of their ids, each as length, id and eight bytes of rev. */
function digestOf({ chunks }: MemberList): Buffer {
  let before: Digested | undefined
  for (const chunk of chunks.slice(0, -1)) before = digested(before, chunk)
  return hashAfter(before)
    .update(bytesOf(chunks.at(-1) ?? []))
    .digest()
}

type Chunk = readonly Member[]

/** The state of a digest behind a chunk and all that come before it. */
interface Digested {
  readonly before: Digested | undefined
  readonly hash: Hash
}

/** Sets of thousands of members change: a digest begins where it first differs from an earlier one. */
const digestedChunks = new WeakMap<Chunk, Digested>()

function digested(before: Digested | undefined, chunk: Chunk): Digested {
  const known = digestedChunks.get(chunk)
  if (known !== undefined && known.before === before) return known
  const made = { before, hash: hashAfter(before).update(bytesOf(chunk)) }
  digestedChunks.set(chunk, made)
  return made
}

const hashAfter = (before: Digested | undefined): Hash => before?.hash.copy() ?? createHash('sha256')

const encodedChunks = new WeakMap<Chunk, Buffer>()

function bytesOf(chunk: Chunk): Buffer {
  const known = encodedChunks.get(chunk)
  if (known !== undefined) return known
  const bytes = encode(chunk)
  encodedChunks.set(chunk, bytes)
  return bytes
}

/** Of a UTF-16 code unit in UTF-8. */
const mostBytes = 3

function encode(chunk: Chunk): Buffer {
  const bytes = Buffer.allocUnsafe(chunk.reduce((sum, { id }) => sum + 12 + mostBytes * id.length, 0))
  let at = 0
  for (const { id, rev } of chunk) {
    const length = bytes.write(id, at + 4)
    bytes.writeUInt32BE(length, at)
    bytes.writeUInt32BE(Math.floor(rev / 2 ** 32), at + 4 + length)
    at = bytes.writeUInt32BE(rev % 2 ** 32, at + 8 + length)
  }
  return bytes.subarray(0, at)
}

const mismatch = 'the rows do not match the head of their set: a row is missing, added or of another revision'

/** Heads of sets, by the set's name. */
export function headOf(set: string, seal: Seal): Head {
  const rows = sealedAccess(headsTable, seal)
  /** Heads that transactions have locked. */
  const locked = new WeakMap<Reader, HeadRow>()

  async function current(q: Reader): Promise<HeadRow> {
    return locked.get(q) ?? (await rows.find(q, { set })) ?? seal.refuse('heads', set, 'the head of the set is missing')
  }

  const require = (head: HeadRow, members: Members): void => {
    if (!lists(head, members)) seal.refuse('heads', set, mismatch)
  }

  async function compare<M extends Members>(q: Reader, reading: MaybePromise<M>) {
    const [head, members] = await Promise.all([consistently(q), reading])
    require(head, members)
    return { head, members }
  }

  async function consistently(q: Reader): Promise<HeadRow> {
    if (!q.consistent) throw new TypeError('a head is verified in the snapshot or transaction that read its members')
    return current(q)
  }

  return {
    async create(tx) {
      await rows.insert(tx, { set, count: 0, digest: digestOf(memberList([])), seq: 0 })
    },

    async lock(tx) {
      const head = await rows.lock(tx, { set })
      if (head) locked.set(tx, head)
    },

    verify: async (q, reading) => (await compare(q, reading)).members,
    read: consistently,
    require,
    sequence: async (q, members) => (await compare(q, members)).head.seq,

    async advance(tx, members, changed) {
      const head = await current(tx)
      const list = listOf(members)
      const trail = changed ? { trail: trailAfter(head.trail, changed) } : {}
      const changes = { count: list.size, digest: digestOf(list), seq: head.seq + 1, ...trail }
      const next = await rows.update(tx, head, changes)
      if (locked.has(tx)) locked.set(tx, next)
      return next
    },

    assume(tx, head) {
      rows.assume(tx, head)
      locked.set(tx, head)
    },

    async remove(tx) {
      await rows.remove(tx, await current(tx))
    },
  }
}
