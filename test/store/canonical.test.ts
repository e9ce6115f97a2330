import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalForm } from '../../src/store/sealed/canonical.ts'
import type { Kind, Stored } from '../../src/store/table.ts'

type Cell = readonly [name: string, kind: Kind, value: Stored]

/** The canonical form of a row in a table that has just these columns. */
const canonical = (format: number, table: string, cells: readonly Cell[]): Buffer =>
  canonicalForm(
    table,
    cells.map(([name, kind]) => ({ name, kind })),
  )(
    format,
    cells.map(([, , value]) => value),
  )

const name = fc.string({ minLength: 1, maxLength: 4 })
const text = fc.string({ unit: 'grapheme', maxLength: 6 }).filter((value) => value.isWellFormed())
const value: fc.Arbitrary<readonly [Kind, Stored]> = fc.oneof(
  fc.tuple(fc.constantFrom<Kind>('text', 'json'), text),
  fc.tuple(fc.constant<Kind>('integer'), fc.maxSafeInteger()),
  fc.tuple(fc.constant<Kind>('boolean'), fc.constantFrom(0, 1)),
  fc.tuple(
    fc.constant<Kind>('bytes'),
    fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes)),
  ),
  fc.tuple(fc.constantFrom<Kind>('text', 'bytes', 'integer'), fc.constant(null)),
)
const cells = fc
  .dictionary(name, value, { maxKeys: 4 })
  .map((row): Cell[] => Object.entries(row).map(([column, [kind, stored]]) => [column, kind, stored]))
const row = fc.record({ format: fc.nat(3), table: name, cells })

/** Equal exactly for two rows that are the same row. */
const meaning = ({ format, table, cells }: { format: number; table: string; cells: Cell[] }): string =>
  JSON.stringify([
    format,
    table,
    cells
      .filter(([, , stored]) => stored !== null)
      .map(([column, kind, stored]) => [column, kind, Buffer.isBuffer(stored) ? [...stored] : stored])
      .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
  ])

test('two rows have the same canonical form only if they are the same row', () => {
  fc.assert(
    fc.property(row, row, (a, b) => {
      const same = canonical(a.format, a.table, a.cells).equals(canonical(b.format, b.table, b.cells))
      expect(same).toBe(meaning(a) === meaning(b))
    }),
    { numRuns: 2000 },
  )
})

test('neighbouring texts, NULL and empty, and kinds of one spelling are kept apart', () => {
  const form = (...cells: Cell[]) => canonical(1, 't', cells).toString('hex')
  const forms = [
    form(['a', 'text', 'xy'], ['b', 'text', '']),
    form(['a', 'text', 'x'], ['b', 'text', 'y']),
    form(['a', 'text', ''], ['b', 'text', 'xy']),
    form(['a', 'text', null], ['b', 'text', 'xy']),
    form(['a', 'bytes', Buffer.from('xy')], ['b', 'text', '']),
    form(['a', 'text', '1'], ['b', 'text', '']),
    form(['a', 'integer', 1], ['b', 'text', '']),
    form(['a', 'boolean', 1], ['b', 'text', '']),
  ]
  expect(new Set(forms).size).toBe(forms.length)
})

test('a cell can be dropped, added or moved to another column only with another form', () => {
  fc.assert(
    fc.property(row, fc.nat(), name, (a, pick, column) => {
      const present = a.cells.filter(([, , stored]) => stored !== null)
      const [victim] = present.slice(pick % Math.max(1, present.length))
      fc.pre(victim !== undefined && !a.cells.some(([other]) => other === column))
      const before = canonical(a.format, a.table, a.cells)
      const without = a.cells.filter((cell) => cell !== victim)
      const moved: Cell[] = [...without, [column, victim[1], victim[2]]]
      expect(canonical(a.format, a.table, without).equals(before)).toBe(false)
      expect(canonical(a.format, a.table, moved).equals(before)).toBe(false)
    }),
  )
})
