import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { routes, table } from '../../src/engines/pki/index.ts'
import { declaredRoutes, wrongKeys } from '../support/routetable.ts'

describe('the route table of PKI', () => {
  test('shows the method and path that each route declares', () => {
    expect(wrongKeys(table)).toEqual([])
    expect(routes).toEqual(Object.values(table))
  })

  test('has every declared route once', async () => {
    const declared = await declaredRoutes(join(import.meta.dirname, '../../src/engines/pki/routes'))
    expect(declared).toEqual(Object.keys(table).sort())
    expect(new Set(routes).size).toBe(routes.length)
  })
})
