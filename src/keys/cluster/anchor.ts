import type { Hsm } from '../../hsm/hsm.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import { headsTable } from '../../store/sealed/heads.ts'

/**
 * What the token remembers of the database: a private data object, so that whoever restores or edits the database alone
 * cannot go back behind it.
 */
export interface Anchor {
  readonly cluster: string
  readonly epoch: number
  /** Hexadecimal check value of the row-MAC key: a key that somebody else knows cannot be put in its place. */
  readonly rowKey: string
  /** Sequence number of every sealed head, by set. */
  readonly heads: Readonly<Record<string, number>>
  /** Grows with every anchor written to this token: the highest is the one that counts. */
  readonly serial: number
}

const application = 'strongroom anchor'

/** The newest anchor of a cluster in the token; undefined when it has none. */
export async function readAnchor(hsm: Hsm, cluster: string): Promise<Anchor | undefined> {
  const anchors: Anchor[] = []
  for (const object of await hsm.find({ class: 'data', application, label: cluster, token: true })) {
    const { value } = await hsm.attributes(object, ['value'])
    // A crash while the token stored it may leave an anchor unreadable; the one before it is still there.
    const anchor = value && parse(value)
    if (anchor?.cluster === cluster) anchors.push(anchor)
  }
  return anchors.reduce<Anchor | undefined>((best, one) => (best && best.serial >= one.serial ? best : one), undefined)
}

/**
 * Writes a new object, then destroys those before it: a crash in between leaves two, never none. What the token remembers of
 * this epoch only grows, a set that ended stays remembered.
 * @throws Error when the database is behind what the token remembers: that must never be forgotten
 */
export async function writeAnchor(hsm: Hsm, anchor: Omit<Anchor, 'serial'>): Promise<Anchor> {
  const { cluster, epoch, heads } = anchor
  const before = await hsm.find({ class: 'data', application, label: cluster, token: true })
  const last = await readAnchor(hsm, cluster)
  const reason = last && behind(last, epoch, heads)
  if (reason !== undefined) throw new Error(`the database has gone back behind what the token remembers: ${reason}`)
  const remembered = last?.epoch === epoch ? { ...last.heads, ...heads } : heads
  const written = { ...anchor, heads: remembered, serial: (last?.serial ?? 0) + 1 }
  await hsm.create({
    class: 'data',
    application,
    label: cluster,
    token: true,
    value: Buffer.from(JSON.stringify(written)),
    usages: [],
  })
  for (const object of before) await hsm.destroy(object)
  return written
}

/** The sequence number of every sealed head, verified. */
export async function readHeads(database: Database, q: Reader): Promise<Record<string, number>> {
  const table = database.table(headsTable)
  const heads: Record<string, number> = {}
  for (let after: string | undefined; ; ) {
    const page = await table.list(q, {}, { by: 'id', limit: 500, ...(after === undefined ? {} : { after }) })
    for (const { set, seq } of page) heads[set] = seq
    after = page.at(-1)?.id
    if (page.length < 500) return heads
  }
}

/** Where the database is behind what the token remembers, in words; undefined when it is not. */
export function behind(anchor: Anchor, epoch: number, heads: Readonly<Record<string, number>>): string | undefined {
  if (epoch < anchor.epoch) return `its epoch is ${epoch}, the token remembers ${anchor.epoch}`
  // Another node accepted a restore: what this token remembers is of the life before.
  if (epoch > anchor.epoch) return undefined
  for (const [set, seq] of Object.entries(anchor.heads)) {
    // A set may end with its mount; a reader that needs a missing one refuses (store/sealed/heads.ts).
    const now = heads[set] ?? seq
    if (now < seq) return `the set ${set} is at change ${now}, the token remembers ${seq}`
  }
  return undefined
}

function parse(value: Buffer): Anchor | undefined {
  try {
    const anchor: Partial<Anchor> = JSON.parse(value.toString('utf8'))
    const { cluster, epoch, rowKey, heads, serial } = anchor
    if (typeof cluster !== 'string' || typeof rowKey !== 'string' || typeof heads !== 'object') return undefined
    return typeof epoch === 'number' && typeof serial === 'number'
      ? { cluster, epoch, rowKey, heads, serial }
      : undefined
  } catch {
    return undefined
  }
}
