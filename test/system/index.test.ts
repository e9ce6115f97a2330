import { join } from 'node:path'
import { expect, test } from 'vitest'
import { table } from '../../src/system/index.ts'
import { sealedTable } from '../../src/system/sealed.ts'
import { declaredRoutes, wrongKeys } from '../support/routetable.ts'

test.each([
  ['sys/', table],
  ['a sealed sys/', sealedTable],
])('the route table of %s shows the method and path that each route declares', (_, shown) => {
  expect(Object.keys(shown).length).toBeGreaterThan(5)
  expect(wrongKeys(shown)).toEqual([])
})

test('the route table of sys/ has every declared route once', async () => {
  const declared = await declaredRoutes(join(import.meta.dirname, '../../src/system/routes'))
  expect(declared).toEqual(Object.keys(table).sort())
  expect(new Set(Object.values(table)).size).toBe(declared.length)
})

test('the route table of a sealed sys/ is a part of the other', () => {
  expect(table).toMatchObject(sealedTable)
})
