import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { shownData, shownInput } from '../../src/audit/elision.ts'
import type { RequestEntry } from '../../src/audit/entry.ts'
import type { Caller, Data } from '../../src/route.ts'
import { Stream } from '../../src/stream.ts'

/** How much of a request or an answer a line repeats, to the character. A string takes 80 of them. */

const caller: Caller = {
  ...{ tokenId: 't', accessor: 'a', displayName: 'd', maker: 'm' },
  policies: [],
}
const content = (sent: string | Uint8Array) => ({
  content_sha256: createHash('sha256').update(sent).digest('hex'),
  content_length: Buffer.byteLength(sent),
})

function entryOf(
  input: Data,
  more: { caller?: Caller; isRefused?: boolean; sent?: string | Uint8Array },
): RequestEntry {
  const { sent = JSON.stringify(input), isRefused = false } = more
  const request = { id: 'i', operation: 'update', path: 'p', credential: '', remoteAddress: '', remotePort: 0 } as const
  return {
    request: { ...request, input, sent, clientCertificate: undefined, mount: undefined },
    ...{ operation: 'update', caller: more.caller, verdict: undefined, isRefused },
  }
}

const isWhole = (input: Data, more: Parameters<typeof entryOf>[1] = {}) => shownInput(entryOf(input, more)) === input
/** Room of a stranger's line for what is in the list of `{ n: [] }`: 51 strings and 7 characters. */
const room = 4096 - 9
const strings = 51
const list = (...last: readonly unknown[]): Data => ({ n: [...Array(strings).fill('x'), ...last] })

describe('a stranger’s line repeats', () => {
  test.each([
    ['numbers', [123_456], [1_234_567]],
    ['booleans', [true, 0], [true, 10]],
    ['null', [null, 0], [null, 10]],
    ['lists and objects with nothing in them', [[], {}, 10], [[], {}, 100]],
    ['lists in a list', [[0], 10], [[0], 100]],
  ])('%s as long as they fit', (_what, fits, beyond) => {
    expect([isWhole(list(...fits)), isWhole(list(...beyond))]).toEqual([true, false])
  })

  test('strings, however long, and the names of members as long as they fit', () => {
    const named = (name: string): Data => ({ n: [...Array(strings - 1).fill('x'.repeat(100)), { [name]: 'x' }] })
    expect([isWhole(named('a')), isWhole(named('ab'))]).toEqual([true, false])
    expect([isWhole(list()), isWhole(list('x'))]).toEqual([true, false])
  })

  test('bytes as it does a string', () => {
    const [bytes, sent] = [new Uint8Array(1000), 'x'.repeat(4096)]
    const input = { n: [...Array(strings - 1).fill('x'), bytes] }
    expect([isWhole(input, { sent }), isWhole(list(bytes), { sent })]).toEqual([true, false])
  })

  test('nothing of a list that is too long but the digest and the length of what was sent', () => {
    const input = list(...Array(9).fill({ é: 'x' }))
    const text = JSON.stringify(input)
    expect(shownInput(entryOf(input, {}))).toEqual(content(text))
    expect(shownInput(entryOf(input, { sent: Buffer.from(text) }))).toEqual(content(text))
  })
})

/** The list that fills so many characters, but for less than `{}` would take. */
const filling = (most: number): readonly unknown[] => [
  ...Array(Math.floor(most / 80)).fill('x'),
  ...Array(Math.floor((most % 80) / 2)).fill({}),
]
const items = filling(256 * 1024 - 4096 + room)

/** Of a body that could fill any line. */
const sent = ' '.repeat(256 * 1024)

test('a known caller’s line repeats 256 KiB', () => {
  expect(isWhole({ n: items }, { caller, sent })).toBe(true)
  expect(isWhole({ n: [...items, {}] }, { caller, sent })).toBe(false)
})

test.each([200, 1000, 10_000])(
  'a known caller’s line repeats 4 KiB and four characters for each of %i bytes',
  (bytes) => {
    const fits = filling(room + 4 * bytes)
    const known = { caller, sent: ' '.repeat(bytes) }
    expect(isWhole({ n: fits }, known)).toBe(true)
    expect(isWhole({ n: [...fits, {}] }, known)).toBe(false)
  },
)

test('the line of a request that was refused before repeats a body of 16 KiB, and none that is longer', () => {
  const [fits, beyond] = [' '.repeat(16 * 1024), ' '.repeat(16 * 1024 + 1)]
  const input = { a: 1 }
  expect(isWhole(input, { caller, isRefused: true, sent: fits })).toBe(true)
  expect(isWhole(input, { caller, isRefused: true, sent: beyond })).toBe(false)
  expect(isWhole(input, { caller, isRefused: false, sent: beyond })).toBe(true)
})

const shown = (what: Data, body: string | Stream) =>
  shownData(what, { warnings: [], error: '', results: false, reply: { status: 200, headers: [], body } })

test('an answer’s line repeats 256 KiB of its data, however long a body that is streamed', () => {
  const data = { n: items }
  const longer = { n: [...items, {}] }
  expect(shown(data, sent)).toBe(data)
  expect(shown(longer, sent)).toEqual(content(sent))
  const stream = new Stream({ length: 1 << 20, sha256: '', open: async function* () {} })
  expect(shown(longer, stream)).toBe(longer)
})

test('an answer’s line repeats 4 KiB of its data and eight characters for each byte of the body', () => {
  const fits = filling(room + 8 * 1000)
  const [data, longer] = [{ n: fits }, { n: [...fits, {}] }]
  const body = ' '.repeat(1000)
  expect(shown(data, body)).toBe(data)
  expect(shown(longer, body)).toEqual(content(body))
})
