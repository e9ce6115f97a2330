import { asn1, NotDer } from './der.ts'
import { readOid } from './oid.ts'

/**
 * Walks through DER (X.690) element by element, as strictly as der.ts, without an object for each element: for
 * structures that are read on every request. Its results are views of the given bytes.
 */
export class Cursor {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number
  /** The offset of the contents of the element just passed. */
  #contents = 0

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  /** The offset of the next element. */
  get at(): number {
    return this.#at
  }

  get more(): boolean {
    return this.#at < this.#end
  }

  /** The next element's tag; undefined at the end. */
  get tag(): number | undefined {
    return this.more ? this.#bytes[this.#at] : undefined
  }

  /** Passes over one element. @throws NotDer when it is missing or has another tag */
  skip(tag = this.tag): void {
    const bytes = this.#bytes
    const at = this.#at
    const short = bytes[at + 1]
    if (at + 2 > this.#end || tag === undefined || short === undefined) throw new NotDer('an element is missing')
    if (bytes[at] !== tag) throw new NotDer('an element of another kind was expected')
    if ((tag & 0x1f) === 0x1f) throw new NotDer('a tag has an unknown form')
    const octets = short < 0x80 ? 0 : short - 0x80
    let size = short
    if (short >= 0x80) {
      if (octets === 0 || octets > 4 || at + 2 + octets > this.#end) throw new NotDer('a length has an unknown form')
      size = bytes.readUIntBE(at + 2, octets)
      if (size < 0x80 || bytes[at + 2] === 0) throw new NotDer('a length is not in its shortest form')
    }
    this.#contents = at + 2 + octets
    if (this.#contents + size > this.#end) throw new NotDer('an element is cut short')
    this.#at = this.#contents + size
  }

  /** One whole element, head included. @throws NotDer */
  element(tag?: number): Buffer {
    const start = this.#at
    this.skip(tag)
    return this.#bytes.subarray(start, this.#at)
  }

  /** The contents of one element. @throws NotDer */
  contents(tag?: number): Buffer {
    this.skip(tag)
    return this.#bytes.subarray(this.#contents, this.#at)
  }

  /** A cursor over the contents of one element. @throws NotDer */
  enter(tag: number): Cursor {
    this.skip(tag)
    return new Cursor(this.#bytes, this.#contents, this.#at)
  }

  /** @throws NotDer unless everything has been read */
  end(): void {
    if (this.more) throw new NotDer('there is an element too many')
  }

  /** An OBJECT IDENTIFIER, dotted. @throws NotDer */
  oid(): string {
    this.skip(asn1.oid)
    return readOid(this.#bytes, this.#contents, this.#at)
  }

  /**
   * A BOOLEAN; an explicit FALSE is accepted, which DER forbids for a default but many certificates have. @throws
   * NotDer
   */
  boolean(): boolean {
    const contents = this.contents(asn1.boolean)
    const [octet] = contents
    if (contents.length !== 1 || (octet !== 0 && octet !== 0xff)) throw new NotDer('a BOOLEAN has an unknown form')
    return octet === 0xff
  }

  /** The two's complement of an INTEGER, in its shortest form. @throws NotDer */
  integer(): Buffer {
    const contents = this.contents(asn1.integer)
    const [high, next] = contents
    if (high === undefined) throw new NotDer('a number is empty')
    const padded = next !== undefined && ((high === 0 && next < 0x80) || (high === 0xff && next > 0x7f))
    if (padded) throw new NotDer('a number is not in its shortest form')
    return contents
  }

  /** An INTEGER from 0 to 2³¹ − 1. @throws NotDer */
  count(): number {
    const contents = this.integer()
    if (contents.length > 4 || (contents[0] ?? 0) > 0x7f) throw new NotDer('a number is out of range')
    return contents.readUIntBE(0, contents.length)
  }

  /** The contents of a BIT STRING without unused bits. @throws NotDer */
  bytes(): Buffer {
    const contents = this.contents(asn1.bitString)
    if (contents[0] !== 0) throw new NotDer('a BIT STRING has unused bits')
    return contents.subarray(1)
  }
}

/** Reads the contents of the single element in `bytes`, to its end. @throws NotDer */
export function within<T>(bytes: Buffer, tag: number, read: (inside: Cursor) => T): T {
  const outside = new Cursor(bytes)
  const inside = outside.enter(tag)
  outside.end()
  const answer = read(inside)
  inside.end()
  return answer
}
