import { expect, test } from 'vitest'
import { Shape } from '../../../src/store/sealed/shape.ts'
import { padded, whereClause } from '../../../src/store/sealed/statements.ts'
import { atLeast, between } from '../../../src/store/table.ts'
import { mounts } from '../support.ts'

test('values fill portions of a power of two, at most 64, the last one repeated', () => {
  expect([...padded([])]).toEqual([])
  expect([...padded(['a'])]).toEqual([['a']])
  expect([...padded([1, 2, 3, 4, 5])]).toEqual([[1, 2, 3, 4, 5, 5, 5, 5]])
  const many = Array.from({ length: 130 }, (_, n) => n)
  expect([...padded(many)].map(({ length }) => length)).toEqual([64, 64, 2])
  expect([...padded(many)].flat()).toEqual(many)
})

test('rows are asked for by equality, by NULL or by a range, and never by a column of JSON', () => {
  const clause = (where: Readonly<Record<string, unknown>>) => whereClause(new Shape(mounts), where)
  expect(clause({})).toEqual({ sql: '', values: [] })
  expect(clause({ path: 'p/', sealWrap: true, createdAt: between(2, 7) })).toEqual({
    sql: ' WHERE `path` = ? AND `seal_wrap` = ? AND `created_at` >= ? AND `created_at` <= ?',
    values: ['p/', 1, 2, 7],
  })
  expect(clause({ createdAt: atLeast(3), type: null })).toEqual({
    sql: ' WHERE `created_at` >= ? AND `type` IS NULL',
    values: [3],
  })
  for (const config of [{}, null]) expect(() => clause({ config })).toThrow('mounts.config cannot be asked for')
})
