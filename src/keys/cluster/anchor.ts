import { unavailable } from '../../errors.ts'
import { HsmRefusal } from '../../hsm/faults.ts'
import { type Handle, StaleHandle } from '../../hsm/handle.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import { headsTable } from '../../store/sealed/heads.ts'

/** The token's memory of the database, in a private data object: restoring or editing the database cannot undo it. */
export interface Anchor {
  readonly cluster: string
  readonly epoch: number
  /** Hexadecimal check value of the row-MAC key: a key known to somebody else cannot replace it. */
  readonly rowKey: string
  /** Sequence number of every sealed head, by set. */
  readonly heads: Readonly<Record<string, number>>
  /** Deleted keys that only this token held, by uuid: no row brings them back, and their objects may be destroyed. */
  readonly tombstones: readonly string[]
  /** Grows with every anchor written to this token. */
  readonly serial: number
}

const application = 'strongroom anchor'

/** The token's memory of a cluster: merged from all its anchors, since several may have been written concurrently. */
export async function readAnchor(hsm: Hsm, cluster: string): Promise<Anchor | undefined> {
  return merged(await listAnchors(hsm, cluster))
}

/** The newest change of a set that the token remembers, unless of an earlier epoch; 0 if it remembers none. */
export async function rememberedChange(hsm: Hsm, cluster: string, set: string, epoch: number): Promise<number> {
  const anchor = await readAnchor(hsm, cluster)
  return anchor !== undefined && anchor.epoch >= epoch ? (anchor.heads[set] ?? 0) : 0
}

/**
 * Adds to the token's memory, which only grows within an epoch: a removed set stays remembered. A new object is written
 * before its predecessors are destroyed: a crash in between leaves two, never none. Processes of one node take turns;
 * other nodes that share the token may write concurrently, and nothing is lost.
 * @param buried tombstones that are no longer needed, because nothing is left to destroy
 */
export async function writeAnchor(
  hsm: Hsm,
  anchor: Omit<Anchor, 'serial'>,
  buried: readonly string[] = [],
): Promise<Anchor> {
  const { cluster } = anchor
  return hsm.alone('anchor', async () => {
    const before = await listAnchors(hsm, cluster)
    const last = merged(before)
    const sum = merge({ ...anchor, serial: (last?.serial ?? 0) + 1 }, last)
    const written = { ...sum, tombstones: sum.tombstones.filter((id) => !buried.includes(id)) }
    const value = Buffer.from(JSON.stringify(written))
    await hsm.create({ class: 'data', application, label: cluster, token: true, value, usages: [] })
    for (const { object } of before) await unlessGone(async () => hsm.destroy(object))
    return written
  })
}

interface Found {
  readonly object: Handle
  /** A crash while the token stored it may leave an anchor unreadable; the one before it is still there. */
  readonly anchor: Anchor | undefined
}

/**
 * Every anchor of a cluster that the token shows; read again while another process replaces some. One that the token
 * refuses to show in two consecutive readings is skipped and hides no other; if no other is left, the reading fails.
 */
async function listAnchors(hsm: Hsm, cluster: string): Promise<Found[]> {
  let refusedBefore: readonly string[] = []
  for (let readings = 0; readings < mostReadings; readings++) {
    const objects = await hsm.find({ class: 'data', application, label: cluster, token: true })
    const refused: string[] = []
    const found = await Promise.all(
      objects.map((object) =>
        unlessGone(
          async () => {
            const { value } = await hsm.attributes(object, ['value'])
            const anchor = value && parse(value)
            return { object, anchor: anchor?.cluster === cluster ? anchor : undefined }
          },
          () => refused.push(numberOf(object)),
        ),
      ),
    )
    const there = found.filter((one) => one !== undefined)
    const unreadable = refused.filter((number) => refusedBefore.includes(number)).length
    if (there.length + unreadable === found.length && (there.length > 0 || unreadable === 0)) return there
    refusedBefore = refused
  }
  throw unavailable('what the token remembers cannot be read: others write it all the time, or the token refuses')
}

const numberOf = ({ value }: Handle): string => value.toString('hex')
const mostReadings = 100

/**
 * Undefined for an object that another process has destroyed meanwhile: tokens do not know the handle any more, or
 * fail. One that could not be destroyed for another reason does no harm: the newer one has its contents, and the next
 * writer tries again.
 * @param refused called when the token knows the handle and refuses, or fails
 */
async function unlessGone<T>(work: () => Promise<T>, refused = () => {}): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof HsmRefusal) refused()
    else if (!(error instanceof StaleHandle)) throw error
    return undefined
  }
}

const merged = (found: readonly Found[]): Anchor | undefined =>
  found.reduce<Anchor | undefined>((sum, { anchor }) => (anchor ? merge(anchor, sum) : sum), undefined)

/** The union of both. Of an earlier epoch only the tombstones count. */
function merge(one: Anchor, other: Anchor | undefined): Anchor {
  if (other === undefined) return one
  const [later, earlier] = newer(one, other) ? [one, other] : [other, one]
  const heads = { ...later.heads }
  if (later.epoch === earlier.epoch) {
    for (const [set, seq] of Object.entries(earlier.heads)) heads[set] = Math.max(seq, heads[set] ?? seq)
  }
  const tombstones = [...new Set([...later.tombstones, ...earlier.tombstones])]
  return { ...later, heads, tombstones, serial: Math.max(one.serial, other.serial) }
}

const newer = (one: Anchor, other: Anchor): boolean =>
  one.epoch === other.epoch ? one.serial >= other.serial : one.epoch > other.epoch

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

/** How the database is behind the token's memory, in words; undefined if it is not. */
export function behind(anchor: Anchor, epoch: number, heads: Readonly<Record<string, number>>): string | undefined {
  if (epoch < anchor.epoch) return `its epoch is ${epoch}, the token remembers ${anchor.epoch}`
  // Another node accepted a restore: this token's memory is of an earlier epoch.
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
    const { cluster, epoch, rowKey, heads, serial, tombstones = [] } = anchor
    if (typeof cluster !== 'string' || typeof rowKey !== 'string' || typeof heads !== 'object') return undefined
    if (typeof epoch !== 'number' || typeof serial !== 'number' || !Array.isArray(tombstones)) return undefined
    return { cluster, epoch, rowKey, heads, tombstones, serial }
  } catch {
    return undefined
  }
}
