import { join } from 'node:path'
import { expect, test } from 'vitest'
import { table } from '../../src/auth/methods/token.ts'
import { declaredRoutes, wrongKeys } from '../support/routetable.ts'

test('the route table of auth/token/ shows the method and path that each route declares', () => {
  expect(wrongKeys(table)).toEqual([])
})

test('the route table of auth/token/ has every declared route once', async () => {
  const declared = await declaredRoutes(join(import.meta.dirname, '../../src/auth/methods/token'))
  expect(declared).toEqual(Object.keys(table).sort())
  expect(new Set(Object.values(table)).size).toBe(declared.length)
})
