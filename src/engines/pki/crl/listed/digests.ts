const perSlot = 2
/** Slots per entry. */
const spread = 1.4
const fewest = 64
/**
 * Digests of six bytes: with a million entries, one in 280 million other serial numbers matches one and has it read.
 */
const placeBits = 16
const mostPlaces = 2 ** placeBits - 1

/**
 * Digests of serial numbers and where each is listed, in eleven bytes of memory per entry: an open-addressing hash
 * table of six bytes of digest and two of place.
 */
export class DigestTable {
  #slots: Uint32Array
  #count = 0

  /** @param room entries to make room for; the table grows beyond */
  constructor(room: number) {
    this.#slots = new Uint32Array(perSlot * Math.ceil((room + fewest) * spread))
  }

  /** @param digest at least six bytes from `at` on @param place 1 to `mostPlaces` */
  add(digest: Buffer, at: number, place: number): void {
    if (place < 1 || place > mostPlaces) throw new RangeError('a place of a digest table')
    if ((this.#count + 1) * spread > this.#slots.length / perSlot) this.#grow()
    this.#put(digest.readUInt32BE(at), ((digest.readUInt16BE(at + 4) << placeBits) | place) >>> 0)
  }

  /** The places of a digest; few ever have more than one. */
  find(digest: Buffer): readonly number[] {
    const [high, low] = [digest.readUInt32BE(0), digest.readUInt16BE(4)]
    const places: number[] = []
    for (let slot = this.#first(high); ; slot = this.#after(slot)) {
      const rest = this.#slots[slot + 1] as number
      if (rest === 0) return places
      if (this.#slots[slot] === high && rest >>> placeBits === low) places.push(rest & mostPlaces)
    }
  }

  /** An entry that is there already is not added again. */
  #put(high: number, rest: number): void {
    let slot = this.#first(high)
    while (this.#slots[slot + 1] !== 0) {
      if (this.#slots[slot] === high && this.#slots[slot + 1] === rest) return
      slot = this.#after(slot)
    }
    this.#slots[slot] = high
    this.#slots[slot + 1] = rest
    this.#count++
  }

  #grow(): void {
    const old = this.#slots
    this.#slots = new Uint32Array(perSlot * Math.ceil((old.length / perSlot) * spread))
    this.#count = 0
    for (let slot = 0; slot < old.length; slot += perSlot) {
      if (old[slot + 1] !== 0) this.#put(old[slot] as number, old[slot + 1] as number)
    }
  }

  #first(high: number): number {
    return (high % (this.#slots.length / perSlot)) * perSlot
  }

  #after(slot: number): number {
    return slot + perSlot === this.#slots.length ? 0 : slot + perSlot
  }
}
