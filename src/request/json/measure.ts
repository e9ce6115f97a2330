import { badRequest } from '../../errors.ts'
import { mayRound } from './numbers.ts'
import { endOfDigits, endOfString, isDigit, quote } from './scan.ts'

/** Deeper than any request of Vault's API, and shallow enough for recursion over the value. */
const maxDepth = 64
/** Members of an object or elements of a list. A list directly in the body may be longer if the route allows it. */
const mostMembers = 10_000
/** Values outside such a longer list: they are parsed in one go. */
const mostLooseValues = 100_000
/** Values inside one element of such a list: they are parsed in one go too. */
const mostElementValues = 1000
const mostValues = 1_000_000
/** Bytes of a longer list parsed in one turn of the event loop. */
const groupBytes = 64 * 1024

/** A list that is a member of the body's object and is parsed group by group. */
export interface LongList {
  /** Offsets of its `[` and its `]`. */
  readonly start: number
  readonly end: number
  /** Offsets of the commas between its groups. */
  readonly cuts: readonly number[]
}

const comma = 0x2c
const openObject = 0x7b
const openList = 0x5b
const closeObject = 0x7d
const closeList = 0x5d

/**
 * Counts the contents of a body in one pass over its bytes, skipping strings, before anything is allocated for it.
 * Malformed input is left to the parser.
 * @param longest the most elements of a list that is a member of the body's object
 * @param mostLoose the most values outside such lists
 * @returns the lists with several groups, and whether a double may fail to reproduce some number as written; use them
 *   before the next pass
 * @throws {ApiError} 400 naming the bound
 */
export function measureJson(
  body: Buffer,
  longest: number,
  mostLoose = mostLooseValues,
): { readonly lists: readonly LongList[]; readonly rounds: boolean } {
  meter.begin(longest, mostLoose)
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) at = endOfString(body, at + 1)
    else if (byte === comma) meter.separate(at)
    else if (byte === openObject || byte === openList) meter.open(byte, at)
    else if (byte === closeObject || byte === closeList) meter.close(at)
    else if (isDigit(byte)) {
      const end = endOfDigits(body, at)
      meter.rounds ||= mayRound(body, at, end)
      at = end - 1
    }
  }
  return meter
}

const noLists: readonly LongList[] = []

/** The state of one pass: only one at a time, so that a small body allocates nothing. */
class Meter {
  lists: readonly LongList[] = noLists
  rounds = false
  /** By depth. */
  readonly #commas = new Uint32Array(maxDepth + 1)
  readonly #kinds = new Uint8Array(maxDepth + 1)
  #longest = 0
  #mostLoose = 0
  #depth = 0
  #loose = 0
  #values = 0
  /** Whether a list is open that is directly in the body and may be longer. */
  #inLongList = false
  #elementValues = 0
  #start = 0
  #cuts: number[] | undefined
  #lastCut = 0

  begin(longest: number, mostLoose: number): void {
    this.lists = noLists
    this.rounds = false
    this.#longest = longest
    this.#mostLoose = mostLoose
    this.#depth = this.#loose = this.#values = 0
    this.#inLongList = false
    this.#commas[0] = 0
  }

  separate(at: number): void {
    const outer = this.#inLongList && this.#depth === 2
    const most = outer ? Math.max(this.#longest, mostMembers) : mostMembers
    const commas = (this.#commas[this.#depth] ?? 0) + 1
    this.#commas[this.#depth] = commas
    if (commas >= most) {
      const isList = this.#kinds[this.#depth] === openList
      throw tooComplex(isList ? `a list of more than ${most} elements` : `an object of more than ${most} members`)
    }
    if (outer) {
      this.#elementValues = 0
      if (at - this.#lastCut >= groupBytes) {
        this.#cuts = [...(this.#cuts ?? []), at]
        this.#lastCut = at
      }
    }
    this.#count()
  }

  open(kind: number, at: number): void {
    this.#count()
    if (this.#depth === maxDepth) throw tooComplex(`nested deeper than ${maxDepth} levels`)
    const depth = ++this.#depth
    this.#commas[depth] = 0
    this.#kinds[depth] = kind
    if (depth !== 2 || kind !== openList || this.#longest <= mostMembers || this.#kinds[1] !== openObject) return
    this.#inLongList = true
    this.#start = this.#lastCut = at
    this.#elementValues = 0
    this.#cuts = undefined
  }

  close(at: number): void {
    if (this.#depth === 2 && this.#inLongList) {
      this.#inLongList = false
      if (this.#cuts) this.lists = [...this.lists, { start: this.#start, end: at, cuts: this.#cuts }]
    }
    if (this.#depth > 0) this.#depth--
  }

  #count(): void {
    if (++this.#values > mostValues) throw tooComplex(`more than ${mostValues} values`)
    if (!this.#inLongList) {
      if (++this.#loose > this.#mostLoose) throw tooComplex(`more than ${this.#mostLoose} values`)
    } else if (++this.#elementValues > mostElementValues) {
      throw tooComplex(`more than ${mostElementValues} values in one element of a list`)
    }
  }
}

const meter = new Meter()

const tooComplex = (reason: string) => badRequest(`refused JSON input due to high complexity: ${reason}`)
