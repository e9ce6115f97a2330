import { type ChainHead, type ChainNames, lineHash, originHash } from './chain.ts'
import type { HeadRow } from './heads.ts'

/** One chain, as far as it was read. */
export interface SeenChain {
  readonly names: ChainNames
  readonly first: Linked
  last: Linked
  /** Names its first line in problems. */
  readonly where: string
  /** Whether the line with the sealed head was read. */
  headSeen: boolean
  lines: number
  /** Lines that the device could not take; the chain goes on after them. */
  dropped: number
}

/** The link of one line. */
interface Linked extends ChainHead {
  readonly previous: string
  /** As the line says it: RFC 3339. */
  readonly time: string
  /** Whether it begins a file, after a line that ends another. */
  readonly opens: boolean
}

export type SealedHead = Pick<HeadRow, 'incarnation' | 'node' | 'sequence' | 'hash' | 'updatedAt'>

/**
 * Reads audit files line by line, oldest first, and reports their faults. A chain must begin with its first line and go
 * on without a break; a line added, changed, moved or taken out breaks it.
 */
export class Verification {
  readonly chains = new Map<string, SeenChain>()
  readonly #heads: (device: string) => Promise<readonly SealedHead[]>
  /** Sealed heads by device and incarnation. */
  readonly #sealed = new Map<string, Map<string, SealedHead>>()
  readonly #problems: string[] = []
  /** Fragments of lines cut off by a full disk: their requests were refused. */
  torn = 0

  /** @param heads every sealed head of a device */
  constructor(heads: (device: string) => Promise<readonly SealedHead[]>) {
    this.#heads = heads
  }

  /** @param where names the line in problems */
  async line(text: string, where: string): Promise<void> {
    if (text === '') return
    const read = parse(text)
    if (read === undefined) {
      this.torn++
      return
    }
    if (typeof read === 'string') {
      this.#problems.push(`${where}: ${read}`)
      return
    }
    const { names, linked } = read
    await this.#loadHeads(names.device)
    const chain = this.chains.get(chainName(names))
    if (chain) this.#extend(chain, linked, where)
    this.#compare(chain ?? this.#begin(names, linked, where), linked, where)
  }

  /**
   * The faults found, once every line was read. Nodes with lines in these files must have all their chains here; other
   * nodes have files of their own.
   * @param from lines written before this time (milliseconds) may lie in other files
   * @param keptSince sealed heads of chains that ended before this time may be gone
   */
  problems(from = 0, keptSince = 0): string[] {
    const problems = [...this.#problems]
    const nodes = new Set([...this.chains.values()].map(({ names }) => names.node))
    for (const [device, heads] of this.#sealed) {
      for (const head of heads.values()) {
        const chain = this.chains.get(chainName({ device, incarnation: head.incarnation }))
        if (head.sequence === 0 || !nodes.has(head.node) || (chain ? chain.headSeen : head.updatedAt < from)) continue
        const lack = chain ? `lacks its line ${head.sequence}` : 'is missing'
        problems.push(`chain ${head.incarnation} of ${head.node} ${lack}, which it had on ${day(head)}`)
      }
    }
    if (this.chains.size === 0) problems.push('there is no audit line')
    for (const { names, first, where } of this.chains.values()) {
      if (first.previous === originHash || endedBefore(from, first)) continue
      problems.push(`${where}: chain ${names.incarnation} begins in its midst: the lines before are missing`)
    }
    for (const { names, lines, last } of this.#withoutHead()) {
      if (endedBefore(keptSince, last)) continue
      problems.push(
        `chain ${names.incarnation} of ${names.node} has ${lines} lines and no sealed head: it may be forged`,
      )
    }
    return problems
  }

  /** Chains that ended so long ago that their sealed head is gone: a cut or forged end would not show. */
  unsealed(keptSince: number): SeenChain[] {
    return this.#withoutHead().filter(({ last }) => endedBefore(keptSince, last))
  }

  #withoutHead(): SeenChain[] {
    const chains = [...this.chains.values()]
    return chains.filter(({ names }) => !this.#sealed.get(names.device)?.has(names.incarnation))
  }

  async #loadHeads(device: string): Promise<void> {
    if (this.#sealed.has(device)) return
    this.#sealed.set(device, new Map((await this.#heads(device)).map((head) => [head.incarnation, head])))
  }

  #begin(names: ChainNames, linked: Linked, where: string): SeenChain {
    const dropped = linked.previous === originHash ? linked.sequence - 1 : 0
    const chain = { names, first: linked, last: linked, where, headSeen: false, lines: 1, dropped }
    this.chains.set(chainName(names), chain)
    return chain
  }

  #extend(chain: SeenChain, linked: Linked, where: string): void {
    const step = linked.sequence - chain.last.sequence
    if (linked.previous !== chain.last.hash || step < 1) {
      const { incarnation } = chain.names
      const before = `line ${chain.last.sequence} of chain ${incarnation}`
      const reason = linked.opens
        ? 'the file before was cut or swapped, or is not in its place'
        : 'a line was changed, moved, added or taken out'
      this.#problems.push(`${where}: does not follow on ${before}: ${reason}`)
    } else chain.dropped += step - 1
    chain.last = linked
    chain.lines++
  }

  #compare(chain: SeenChain, { sequence, hash }: Linked, where: string): void {
    const { device, incarnation } = chain.names
    const head = this.#sealed.get(device)?.get(incarnation)
    if (head?.sequence !== sequence) return
    chain.headSeen = true
    if (head.hash === hash) return
    this.#problems.push(`${where}: is not line ${sequence} of chain ${incarnation} as it was sealed`)
  }
}

const chainName = ({ device, incarnation }: Pick<ChainNames, 'device' | 'incarnation'>): string =>
  `${device} ${incarnation}`

const endedBefore = (time: number, last: Linked): boolean => Date.parse(last.time) < time

const day = ({ updatedAt }: SealedHead): string => new Date(updatedAt).toISOString()

/** The beginning of every record; after a torn line, another may follow on the same line. */
const start = '{"time":"'

/** Undefined for text that is not a record; a problem for a record without a readable chain. */
function parse(text: string): { names: ChainNames; linked: Linked } | string | undefined {
  for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, at + 1)) {
    const json = text.slice(at)
    let record: unknown
    try {
      record = JSON.parse(json)
    } catch {
      continue
    }
    return linkOf(record as Record<string, unknown>, json)
  }
  return undefined
}

function linkOf(
  { chain, time, rotation }: Record<string, unknown>,
  json: string,
): { names: ChainNames; linked: Linked } | string {
  if (typeof chain !== 'object' || chain === null) return 'has no chain field'
  const { node, device, incarnation, epoch, sequence, previous } = chain as Record<string, unknown>
  if (
    typeof node !== 'string' ||
    typeof device !== 'string' ||
    typeof incarnation !== 'string' ||
    typeof epoch !== 'number' ||
    typeof sequence !== 'number' ||
    typeof previous !== 'string'
  ) {
    return 'has an unreadable chain field'
  }
  return {
    names: { node, device, incarnation, epoch },
    linked: { sequence, previous, hash: lineHash(json), time: String(time), opens: opens(rotation) },
  }
}

const opens = (rotation: unknown): boolean =>
  typeof rotation === 'object' && rotation !== null && 'event' in rotation && rotation.event === 'opened'
