/** Node gives each piece of a body a buffer of its own, which takes some 500 bytes besides: smaller ones are copied. */
const smallBytes = 4 * 1024
const leastPageBytes = 1024
const mostPageBytes = 16 * 1024
const noPage = Buffer.alloc(0)

/** The pieces of a body, as they come, in about as much memory as they have bytes. */
export class Pieces {
  #length = 0
  /** A body that comes in one piece is never copied. */
  #first: Buffer | undefined
  #all: Buffer[] | undefined
  /** Small pieces, one behind the other. */
  #page = noPage
  /** The part of the page that is not among the pieces yet. */
  #from = 0
  #to = 0

  /** In bytes. */
  get length(): number {
    return this.#length
  }

  add(piece: Buffer): void {
    this.#length += piece.length
    if (this.#first === undefined) {
      this.#first = piece
      return
    }
    this.#all ??= [this.#first]
    if (piece.length < smallBytes) this.#copy(piece)
    else {
      this.#cut(this.#all)
      this.#all.push(piece)
    }
  }

  joined(): Buffer {
    if (this.#all === undefined) return this.#first ?? noPage
    this.#cut(this.#all)
    return Buffer.concat(this.#all, this.#length)
  }

  /** Lets go of the bytes. */
  clear(): void {
    this.#first = undefined
    this.#all = undefined
    this.#page = noPage
    this.#from = 0
    this.#to = 0
  }

  #copy(piece: Buffer): void {
    if (this.#page.length - this.#to < piece.length) {
      this.#cut(this.#all ?? [])
      // Pages grow with the body: a client that has sent two bytes holds no more than a small one.
      this.#page = Buffer.allocUnsafeSlow(Math.min(mostPageBytes, Math.max(leastPageBytes, this.#length)))
      this.#from = 0
      this.#to = 0
    }
    this.#page.set(piece, this.#to)
    this.#to += piece.length
  }

  #cut(pieces: Buffer[]): void {
    if (this.#to > this.#from) pieces.push(this.#page.subarray(this.#from, this.#to))
    this.#from = this.#to
  }
}
