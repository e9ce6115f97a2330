import { type ChainHead, type ChainNames, lineHash, origin } from './chain.ts'
import type { HeadRow } from './heads.ts'

/** One chain, as far as it was seen. */
export interface SeenChain {
  readonly names: ChainNames
  readonly first: Linked
  last: Linked
  /** Whether the line with the sealed head was met. */
  met: boolean
  lines: number
  /** Lines that the device could not take; the chain goes on behind them. */
  untaken: number
}

/** Of a line, what links it. */
interface Linked extends ChainHead {
  readonly previous: string
  /** As the line says it: RFC 3339. */
  readonly time: string
}

export type SealedHead = Pick<HeadRow, 'incarnation' | 'node' | 'sequence' | 'hash' | 'updatedAt'>

/**
 * Reads audit files line by line, in the order in which they were written, and says what is wrong with them. A chain must
 * begin with its first line and go on without a break; what anybody adds, changes, moves or takes out breaks it.
 */
export class Verification {
  readonly chains = new Map<string, SeenChain>()
  readonly #heads: (device: string) => Promise<readonly SealedHead[]>
  /** The line at which a sealed head must be met, by chain and number. */
  readonly #sealed = new Map<string, Map<string, SealedHead>>()
  readonly #problems: string[] = []
  /** Pieces of lines that a full disk cut off: nobody was answered for them. */
  torn = 0

  /** @param heads every sealed head of a device */
  constructor(heads: (device: string) => Promise<readonly SealedHead[]>) {
    this.#heads = heads
  }

  /** @param where the line, for people */
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
    await this.#know(names.device)
    const chain = this.chains.get(chainName(names))
    if (chain) this.#extend(chain, linked, where)
    this.#compare(chain ?? this.#begin(names, linked, where), linked, where)
  }

  /**
   * To be asked when every line was read. Of the nodes that have lines in these files all chains must be there; other
   * nodes have files of their own.
   * @param from chains that had ended before this moment (milliseconds) may be in files that were not given
   */
  problems(from = 0): string[] {
    const problems = [...this.#problems]
    const nodes = new Set([...this.chains.values()].map(({ names }) => names.node))
    for (const [device, heads] of this.#sealed) {
      for (const head of heads.values()) {
        const chain = this.chains.get(chainName({ device, incarnation: head.incarnation }))
        if (head.sequence === 0 || !nodes.has(head.node) || (chain ? chain.met : head.updatedAt < from)) continue
        const lack = chain ? `lacks its line ${head.sequence}` : 'is not there'
        problems.push(`chain ${head.incarnation} of ${head.node} ${lack}, which it had on ${day(head)}`)
      }
    }
    if (this.chains.size === 0) problems.push('there is no audit line')
    for (const { names, lines } of this.chains.values()) {
      if (this.#sealed.get(names.device)?.has(names.incarnation)) continue
      problems.push(
        `chain ${names.incarnation} of ${names.node} has ${lines} lines and no sealed head: it may be forged`,
      )
    }
    return problems
  }

  async #know(device: string): Promise<void> {
    if (this.#sealed.has(device)) return
    this.#sealed.set(device, new Map((await this.#heads(device)).map((head) => [head.incarnation, head])))
  }

  #begin(names: ChainNames, linked: Linked, where: string): SeenChain {
    const chain = { names, first: linked, last: linked, met: false, lines: 1, untaken: linked.sequence - 1 }
    this.chains.set(chainName(names), chain)
    if (linked.previous !== origin) {
      this.#problems.push(`${where}: chain ${names.incarnation} begins in its midst: the lines before are missing`)
    }
    return chain
  }

  #extend(chain: SeenChain, linked: Linked, where: string): void {
    const step = linked.sequence - chain.last.sequence
    if (linked.previous !== chain.last.hash || step < 1) {
      const { incarnation } = chain.names
      const before = `line ${chain.last.sequence} of chain ${incarnation}`
      this.#problems.push(`${where}: does not follow on ${before}: a line was changed, moved, added or taken out`)
    } else chain.untaken += step - 1
    chain.last = linked
    chain.lines++
  }

  #compare(chain: SeenChain, { sequence, hash }: Linked, where: string): void {
    const { device, incarnation } = chain.names
    const head = this.#sealed.get(device)?.get(incarnation)
    if (head?.sequence !== sequence) return
    chain.met = true
    if (head.hash === hash) return
    this.#problems.push(`${where}: is not line ${sequence} of chain ${incarnation} as it was sealed`)
  }
}

const chainName = ({ device, incarnation }: Pick<ChainNames, 'device' | 'incarnation'>): string =>
  `${device} ${incarnation}`

const day = ({ updatedAt }: SealedHead): string => new Date(updatedAt).toISOString()

/** What every record begins with; behind the piece of a line that was torn, another may follow on the same line. */
const start = '{"time":"'

/** Undefined for what is no record; a text for a record that does not say which chain it is of. */
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
  { chain, time }: Record<string, unknown>,
  json: string,
): { names: ChainNames; linked: Linked } | string {
  if (typeof chain !== 'object' || chain === null) return 'says of no chain that it belongs there'
  const { node, device, incarnation, epoch, sequence, previous } = chain as Record<string, unknown>
  if (
    typeof node !== 'string' ||
    typeof device !== 'string' ||
    typeof incarnation !== 'string' ||
    typeof epoch !== 'number' ||
    typeof sequence !== 'number' ||
    typeof previous !== 'string'
  ) {
    return 'its place in a chain cannot be read'
  }
  return {
    names: { node, device, incarnation, epoch },
    linked: { sequence, previous, hash: lineHash(json), time: String(time) },
  }
}
