import { expect, test } from 'vitest'
import { jobOfSite } from '../../src/engines/pki/site.ts'

test('every site has a job of its own, whose name fits where leases are kept', () => {
  const longest = 'n'.repeat(32)
  const names = ['default', 'north', 'North', longest].map((site) => jobOfSite('rebuild CRLs', site))
  expect(new Set(names).size).toBe(names.length)
  expect(Math.max(...names.map(({ length }) => length))).toBeLessThanOrEqual(128)
})
