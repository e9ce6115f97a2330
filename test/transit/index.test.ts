import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { routes, table } from '../../src/engines/transit/index.ts'
import type { Route } from '../../src/route.ts'

const folder = join(import.meta.dirname, '../../src/engines/transit/routes')

const isRoute = (value: unknown): value is Route<unknown> =>
  typeof value === 'object' && value !== null && 'method' in value && 'path' in value && 'run' in value

/** Every route that a file of routes/ exports. */
async function declaredRoutes(): Promise<Route<unknown>[]> {
  const declared: Route<unknown>[] = []
  for await (const file of glob('**/*.ts', { cwd: folder })) {
    const exports: Record<string, unknown> = await import(join(folder, file))
    declared.push(...Object.values(exports).filter(isRoute))
  }
  return declared
}

describe('the route table of Transit', () => {
  test('shows the method and path that each route declares', () => {
    const shown = Object.entries(table).map(([key, { method, path }]) => ({ key, declared: `${method} ${path}` }))
    expect(shown.filter(({ key, declared }) => key !== declared)).toEqual([])
    expect(routes).toEqual(Object.values(table))
  })

  test('has every declared route once', async () => {
    const declared = await declaredRoutes()
    expect(declared.length).toBeGreaterThan(30)
    const name = ({ method, path }: Pick<Route<unknown>, 'method' | 'path'>) => `${method} ${path}`
    expect(declared.map(name).sort()).toEqual(Object.keys(table).sort())
    expect(new Set(routes).size).toBe(routes.length)
  })
})
