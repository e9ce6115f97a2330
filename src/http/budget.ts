import { networkOf } from '../network.ts'

/** The share of a budget that one address may hold, of IPv6 one /64. */
const addressShare = 1 / 2

/** Bytes that a worker holds for its clients, for one purpose. */
export class ByteBudget {
  readonly #totalBytes: number
  readonly #byAddress = new Map<string, number>()
  #heldBytes = 0

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** A part of it, empty at first. @param address of the client; empty on a unix socket */
  claim(address: string): Claim {
    return new Claim(this, networkOf(address))
  }

  /** Takes more, or gives back. @returns false, and nothing changes, when there is not so much left */
  move(address: string, bytes: number, isAlone: boolean): boolean {
    const held = this.#byAddress.get(address) ?? 0
    const fits = this.#heldBytes + bytes <= this.#totalBytes && held + bytes <= this.#totalBytes * addressShare
    // Whatever a listener takes at all is taken when nothing else is held.
    if (bytes > 0 && !fits && !isAlone) return false
    this.#heldBytes += bytes
    if (held + bytes === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, held + bytes)
    return true
  }
}

/** The part of a budget that one body, or one answer, holds. */
export class Claim {
  readonly #budget: ByteBudget
  readonly #address: string
  #bytes = 0

  constructor(budget: ByteBudget, address: string) {
    this.#budget = budget
    this.#address = address
  }

  /** @returns false, and nothing changes, when there is not so much left */
  resize(bytes: number): boolean {
    if (!this.#budget.move(this.#address, bytes - this.#bytes, this.#budget.heldBytes === this.#bytes)) return false
    this.#bytes = bytes
    return true
  }

  /** May be called again. */
  release(): void {
    this.resize(0)
  }
}

/** The budgets of a worker, over all its listeners. */
export interface Budgets {
  /** Bodies that are not known to come from a caller. */
  readonly strangers: ByteBudget
  /** Bodies whose credential was found good. */
  readonly callers: ByteBudget
  /** Answers that their clients have not taken yet: to callers, and to strangers, who could use up the others' room. */
  readonly answers: ByteBudget
  readonly answersToStrangers: ByteBudget
}

/** @param memoryMebibytes above which a worker is replaced */
export function shareMemory(memoryMebibytes: number): Budgets {
  const share = (part: number) => new ByteBudget(memoryMebibytes * 2 ** 20 * part)
  return { strangers: share(1 / 64), callers: share(1 / 8), answers: share(3 / 32), answersToStrangers: share(3 / 32) }
}
